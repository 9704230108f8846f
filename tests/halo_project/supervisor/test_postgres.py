"""The same server on PostgreSQL: it is healthy, and outlives a restart of the database."""


def test_a_whole_halo_on_postgres(start_halo, postgres_server):
    halo = start_halo(HALO_DATABASE_URL=postgres_server.url)
    assert halo.health()[1]["database"] == "ok"
    assert not halo.home.database.exists()

    postgres_server.stop()
    halo.wait_for(lambda: halo.health()[0] == 503)
    postgres_server.start()
    halo.wait_until_healthy()
    assert halo.process.poll() is None
