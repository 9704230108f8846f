"""Thin Celery entries. A task is only a wake-up: it hands a session to this process's loop and returns."""

from halo_project.celery import app


@app.task(name="agents.run_session", ignore_result=True)
def run_session(session_pk: int) -> None:
    from agents_app import worker

    worker.submit(session_pk)
