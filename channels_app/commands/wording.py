"""What commands say, in English and Chinese. A key is a command, a verb of one (`session.new`) or an answer."""

from pathlib import Path

_TEXTS: dict[str, tuple[str, str]] = {
    "help": ("This list", "显示此列表"),
    "session": ("Sessions of this workspace", "本工作区的会话"),
    "session.new": ("Begin a new session", "新建会话"),
    "session.list": ("List the sessions, newest first", "列出会话，最新的在前"),
    "session.info": ("Show this session with its sub-agents", "显示当前会话及其子代理"),
    "session.switch": ("Go to session <n> of the list", "切换到列表中的第 <n> 个会话"),
    "session.stop": ("End the answer, and drop what waits", "停止回答，并清空等待的消息"),
    "session.interrupt": ("End the answer and go on with what waits", "中断回答，继续处理等待的消息"),
    "session.compact": ("Make the agent's memory of this session shorter", "压缩当前会话的上下文"),
    "session.context": ("Show what the agent's context is made of", "显示上下文的组成"),
    "agent": ("Agents of this workspace", "本工作区的代理"),
    "agent.list": ("List the agents", "列出代理"),
    "agent.switch": ("Begin a session with agent <n or id>", "与第 <n> 个或指定 <id> 的代理开始新会话"),
    "agent.desc": ("Describe agent <id>", "说明代理 <id>"),
    "agent.delete": ("Delete the files of agent <id>", "删除代理 <id> 的文件"),
    "skill": ("Skills of this workspace", "本工作区的技能"),
    "skill.list": ("List the skills", "列出技能"),
    "skill.desc": ("Describe skill <id>", "说明技能 <id>"),
    "skill.disable": ("Switch skill <id> off in this workspace", "在本工作区停用技能 <id>"),
    "skill.enable": ("Switch skill <id> on again", "重新启用技能 <id>"),
    "skill.delete": ("Delete the files of skill <id>", "删除技能 <id> 的文件"),
    "workspace": ("The folder the agents work on", "代理所在的工作目录"),
    "workspace.info": ("Show the workspace", "显示当前工作区"),
    "workspace.switch": ("Go to the workspace at <path>", "切换到 <path> 处的工作区"),
    # -- answers
    "commands": ("Commands", "命令"),
    "skill_commands": ("Commands of skills", "技能命令"),
    "verbs": ("Verbs", "子命令"),
    "short_forms": ("Short forms", "简写"),
    "short_verbs": ("Short forms of verbs", "子命令简写"),
    "alias_hides": (
        "aliases.yaml: /{alias} stands for {meaning}, so the skill '{skill}' is not reached by /{alias}.",
        "aliases.yaml：/{alias} 是 {meaning} 的简写，因此 /{alias} 不会到达技能“{skill}”。",
    ),
    "scope_marker": (
        "`@scope <folder>` in a message adds the instructions of that folder to this one message.",
        "消息中的 `@scope <目录>` 会为这条消息加入该目录的说明。",
    ),
    "warning": ("Note", "注意"),
    "needs_level": (
        "`{command}` needs the access level {needed}; yours is {level}.",
        "`{command}` 需要 {needed} 权限，您的权限是 {level}。",
    ),
    "no_verb": ("`/{noun}` has no verb `{verb}`.", "`/{noun}` 没有子命令 `{verb}`。"),
    "no_session": ("There is no session yet. Write something first.", "还没有会话，请先发送一条消息。"),
    "no_sessions": ("There are no sessions yet.", "还没有会话。"),
    "no_such_session": (
        "There is no session {wanted}. `/session list` shows them.",
        "没有会话 {wanted}，请用 `/session list` 查看。",
    ),
    "many_sessions": (
        "More than one session ends in {wanted}. Give more of the id.",
        "有多个会话的 id 以 {wanted} 结尾，请给出更完整的 id。",
    ),
    "which_session": ("Say which one: `/session switch <n>`.", "请指明：`/session switch <n>`。"),
    "new_session": ("A new session. Write your first message.", "新会话已就绪，请发送第一条消息。"),
    "switched": ("Session: {title}", "当前会话：{title}"),
    "untitled": ("Untitled", "无标题"),
    "stopped": ("Stopped.", "已停止。"),
    "interrupted": ("Interrupted; what waited goes on.", "已中断，继续处理等待的消息。"),
    "nothing_runs": ("Nothing is running here.", "当前没有正在进行的任务。"),
    "compacting": (
        "Looking for what can be made shorter; how it went follows.",
        "正在检查可压缩的历史记录，结果稍后显示。",
    ),
    "more": ("… and older ones", "……以及更早的会话"),
    "more_below": ("… and {count} more", "……以及另外 {count} 个"),
    "current": ("current", "当前"),
    "running": ("at work", "运行中"),
    "idle": ("idle", "空闲"),
    "stopped_state": ("stopped", "已停止"),
    "archived": ("archived", "已归档"),
    "created": ("began {moment}", "开始于 {moment}"),
    "active": ("last active {moment}", "最近活动 {moment}"),
    "context": ("Context", "上下文"),
    "tokens": (
        "{used} of {most} tokens ({percent} %)",
        "{used} / {most} 个 token（{percent} %）",
    ),
    "agent_word": ("Agent", "代理"),
    "model_word": ("Model", "模型"),
    "tokens_word": ("Filled", "已用"),
    "directory_word": ("Working directory", "工作目录"),
    "written_word": ("Tokens written", "输出 token"),
    "prompt_word": ("System prompt", "系统提示词"),
    "characters": ("{count} characters", "{count} 个字符"),
    "which_agent": ("Say which one: `/agent {verb} <id>`.", "请指明：`/agent {verb} <id>`。"),
    "no_such_agent": (
        "There is no agent {wanted}. `/agent list` shows them.",
        "没有代理 {wanted}，请用 `/agent list` 查看。",
    ),
    "no_agents": ("There are no agents.", "没有代理。"),
    "agent_off": ("The agent {name} is switched off in this workspace.", "代理 {name} 已在本工作区停用。"),
    "agent_switched": (
        "A new session with {name}. Write your first message.",
        "已与 {name} 开始新会话，请发送第一条消息。",
    ),
    "which_skill": ("Say which one: `/skill {verb} <id>`.", "请指明：`/skill {verb} <id>`。"),
    "no_such_skill": (
        "There is no skill {wanted}. `/skill list` shows them.",
        "没有技能 {wanted}，请用 `/skill list` 查看。",
    ),
    "no_skills": ("There are no skills.", "没有技能。"),
    "skill_off": ("The skill {name} is switched off in this workspace.", "技能 {name} 已在本工作区停用。"),
    "skill_on": ("The skill {name} is switched on in this workspace.", "技能 {name} 已在本工作区启用。"),
    "already_off": ("The skill {name} was switched off already.", "技能 {name} 已经停用。"),
    "already_on": ("The skill {name} was switched on already.", "技能 {name} 已经启用。"),
    "built_in": ("{name} comes with Halo and cannot be deleted.", "{name} 是 Halo 自带的，不能删除。"),
    "deleted": ("Deleted: {name} ({scope}).", "已删除：{name}（{scope}）。"),
    "off": ("switched off", "已停用"),
    "cannot_answer": ("cannot answer: {error}", "无法回答：{error}"),
    "switched_in_vain": (
        "A new session with {name}, which cannot answer yet. {error}",
        "已与 {name} 开始新会话，但它目前无法回答。{error}",
    ),
    "state_word": ("State", "状态"),
    "cannot_be_read": ("cannot be read: {error}", "无法读取：{error}"),
    "scope_word": ("From", "来源"),
    "workspace_scope": ("this workspace", "本工作区"),
    "global_scope": ("this installation", "本机全局"),
    "bundled_scope": ("comes with Halo", "Halo 自带"),
    "tools_word": ("Tools", "工具"),
    "team_word": ("Team", "团队"),
    "skills_word": ("Skills", "技能"),
    "command_word": ("Command", "命令"),
    "level_word": ("Access level", "权限"),
    "sessions_word": ("Sessions", "会话"),
    "agents_word": ("Agents", "代理"),
    "workspace_word": ("Workspace", "工作区"),
    "which_folder": ("Say which folder: `/workspace switch <path>`.", "请指明目录：`/workspace switch <path>`。"),
    "workspace_switched": (
        "The workspace is {path} now. Write your first message there.",
        "当前工作区：{path}，请发送第一条消息。",
    ),
}

_SHOWN_CHARS = 80
_REASON_CHARS = 300


def say(language: str, key: str, **values: object) -> str:
    """The sentence in the language, a tag such as `zh-CN`; English for one that is not known."""
    english, chinese = _TEXTS[key]
    text = chinese if language.lower().partition("-")[0] == "zh" else english
    return text.format(**values) if values else text


def list_number(text: str) -> int | None:
    """The place in a list that somebody wrote: 1 to 999; None for what is no such number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 4 and int(text) > 0 else None


def one_line(text: str, limit: int = _SHOWN_CHARS) -> str:
    """A title or description as a part of a line."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def reason(error: str, folder: Path | None = None) -> str:
    """Why something cannot be used, for a list that has named it already: from its file's name on."""
    _, found, rest = error.partition(f"{folder}/") if folder is not None else ("", "", "")
    return one_line(rest if found else error, _REASON_CHARS)
