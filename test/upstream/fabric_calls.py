"""Faults of the fabric's calls, of jobs and of components: F1 to F25."""
import os
import shutil
import subprocess
import time

from play import DEVICES, INDEX, VENDOR, Late, answered, fault, fixed, inapplicable, s, there
from tool_requests import CODE, listener

NOT_FOUND = -46


@fault("F1")
def index_of_a_client(scene):
    tool = scene.tool(scene.host())
    index = tool.must("register", r"fabric 0 index (\d+)").group(1)
    return fixed("fabric->index is that of the answer") if index == "7" else there(f"fabric->index is {index} where the answer has 7")


@fault("F2")
def infos_not_freed(scene):
    host = scene.host()
    host.must("quiet", "quiet")
    tool = scene.tool(host)
    tool.must("register", "fabric 0")
    tool.must("update 7 200", "update 0")
    before = tool.heap()
    tool.must("update 7 200", "update 0")
    each = (tool.heap() - before) / 200
    return there(f"{each:.0f} bytes of an update stay at the caller") if each > 60 else fixed("an update frees what it replaces")


@fault("F3")
def component_at_once(scene):
    host = scene.host()
    host.must("component now", "component now")
    status = answered(scene.stranger(host), s.FABRIC_REGISTER, s.size(0))
    harm = host.harm()
    if harm:
        return there(harm)
    return fixed("the register is answered") if status == 0 else there(f"the register gets {'no answer' if status is None else status}")


@fault("F4")
def component_later(scene):
    host = scene.host()
    host.must("component later", "component later")
    scene.stranger(host).post(s.item(bytes([s.FABRIC_REGISTER])) + s.size(0))
    host.need("component later", start=len(host.lines) - 1)
    time.sleep(0.2)
    if host.serves(1.5):
        return fixed("tools are answered while a component works")
    return there(f"no tool is answered while a component works{'' if host.serves(5) else ', nor afterwards'}")


@fault("F5")
def status_of_unpacking(scene):
    host = scene.host()
    host.must("refuse", "refuses")
    status = int(scene.tool(host).must("register_nb", "registered (.*)").group(1))
    if status == NOT_FOUND:
        return fixed("the callback gets the server's status")
    return there(f"the callback gets {status}, and the server said {NOT_FOUND}")


@fault("F6")
def query_of_the_lost(scene):
    host = scene.host()
    tool = scene.tool(host)
    start = tool.tell("query hold")
    host.need("query hold")
    host.kill()
    answer = tool.wait("answer (.*)", 4, start)
    if answer is None:
        return there(f"PMIx_Query_info() waits for ever: {tool.ended() or 'the tool runs'}")
    return fixed(f"PMIx_Query_info() returns {answer.group(1)}")


@fault("F7")
def error_not_passed_on(scene):
    other, host = scene.host(), scene.host()
    host.must(f"attach {other.uri()}", "attached 0")
    status = answered(scene.stranger(host), s.QUERY, s.query("fail"))
    if status is None:
        return there("a query that the host answers with an error is not answered")
    return fixed(f"the host's error is passed on ({status})")


@fault("F8")
def component_not_closed(scene):
    folder = os.path.join(scene.dir, "components")
    os.mkdir(folder)
    name = "pmix_mca_pmdl_upstream.so"
    shutil.copy(scene.library.program(name), folder)
    own = os.path.join(scene.library.libdir, "pmix")
    path = f"{folder}:{own}"
    host = scene.host(PMIX_MCA_mca_base_component_path=path, PMIX_MCA_pmix_mca_base_component_path=path)
    if "component: opened" not in host.stderr():
        return inapplicable(f"a component of the folder is not loaded by this build: {host.stderr()[-200:]}")
    host.must("finalize", "finalized 0")
    said = host.stderr()
    if "component: closed" in said:
        return fixed("a component is closed in finalize")
    return there(f"a component is {'unloaded' if 'component: unloaded' in said else 'left'} without being closed")


def in_folder(scene, mode, told):
    """What happens to a folder for temporary files: its mode before the end, and whether a file in it is there afterwards."""
    folder = os.path.join(scene.dir, "folder")
    os.mkdir(folder)
    os.chmod(folder, mode)
    os.mkdir(os.path.join(folder, "other"))
    with open(os.path.join(folder, "other", "file"), "w", encoding="ascii"):
        pass
    host = scene.host(*([f"pmix.srvr.tmpdir={folder}"] if told else []), TMPDIR=folder)
    while_up = os.stat(folder).st_mode & 0o7777
    host.must("finalize", "finalized")
    return while_up, os.path.exists(os.path.join(folder, "other", "file"))


@fault("F9")
def folder_taken(scene):
    mode, stays = in_folder(scene, 0o700, True)
    if mode == 0o700 and stays:
        return fixed("a folder of mode 0700 keeps its mode and its files")
    return there(f"a folder of mode 0700 has the mode {mode:04o}, and {'keeps its files' if stays else 'is emptied at the end'}")


@fault("F24")
def folder_emptied(scene):
    _, stays = in_folder(scene, 0o1777, False)
    return fixed("a folder like /tmp keeps its files") if stays else there("a folder like /tmp is emptied at the end")


@fault("F10")
def coordinates(scene):
    tool = scene.tool(scene.host())
    if tool.ask("coordinates", "coordinates made"):
        return fixed("PMIX_COORD_CREATE clears what it has made")
    return there(f"PMIX_COORD_CREATE: {tool.ended(1) or 'no answer'}")


@fault("F11")
def pquery(scene):
    program = scene.library.installed("pquery")
    if program is None:
        return inapplicable("this installation has no pquery")
    command = [program, "--uri", scene.host().uri(), INDEX]
    done = subprocess.run(command, env=scene.env(), capture_output=True, text=True, timeout=10, check=False)
    return there(f"pquery dies of signal {-done.returncode}") if done.returncode < 0 else fixed(f"pquery ends with {done.returncode}")


def exchanged(scene):
    """A key that processes can exchange: none of the library's own, but in 5 and 6, see F20."""
    return VENDOR if scene.library.version[0] in "56" else "own.value"


@fault("F12")
def refreshed(scene):
    key = exchanged(scene)
    host = scene.host()
    scene.job(host)
    writer, reader = (scene.client(host, rank=rank) for rank in range(2))
    got = []
    for value, how in (("old", ""), ("new", " pmix.get.refresh!")):
        writer.must(f"put {key} {value}", "put 0 0")
        answer = reader.ask(f"get {key} = 0{how}", "got (.*)", 5)
        got.append(answer.group(1) if answer else f"no answer: the caller {reader.ended() or 'waits'}, the server {host.ended() or 'runs'}")
    if got[0] != "0 old":
        raise Late(f"the first value: {got[0]}")
    return fixed("the new value is found") if got[1] == "0 new" else there(f"after a refresh: {got[1]}")


@fault("F15")
def timers(scene):
    host = scene.host()
    scene.job(host, ranks=3)
    clients = [scene.client(host, rank=rank) for rank in range(3)]
    for client in clients:
        client.must("connect 3 30", "connect 0")
    if clients[0].wait("connected", 3) is None:
        raise Late("not connected")
    if host.ask("finalize", "finalized", 6):
        return fixed("the server ends")
    return there(f"the server's finalize: {host.ended() or 'hangs'}")


@fault("F16")
def log_of_a_tool(scene):
    status = scene.tool(scene.host()).ask("log", "log (.*)", 5)
    if status is None:
        return there("PMIx_Log() of a tool is not answered")
    return fixed("PMIx_Log() of a tool succeeds") if status.group(1) == "0" else there(f"PMIx_Log() of a tool: {status.group(1)}")


def with_array(scene, n, key=DEVICES):
    """A job whose information has an array of n infos: how its process starts, and the host lives."""
    host = scene.host()
    host.must(f"job job here 0 1 {key}[{n}", "job")
    host.must("client job 0", "registered 0")
    try:
        client = scene.client(host, need=False)
        init = client.wait("init (-?[0-9]+)", 6)
    except Late:
        init = None
    return host.lines, init.group(1) if init else None, host.ended(0.5)


@fault("F17")
def shared_memory_too_small(scene):
    _, init, _ = with_array(scene, 2)
    if init != "0":
        return inapplicable("F21 comes first")
    _, init, ended = with_array(scene, 20000)
    if ended or init != "0":
        return there(f"a job with an array of 20,000 infos: {ended or 'no end'} of the server, PMIx_Init() of the process {init}")
    return fixed("a job with an array of 20,000 infos starts")


@fault("F21")
def array_of_a_job(scene):
    lines, init, ended = with_array(scene, 2, "own.list")
    if init == "0":
        return fixed("a job with an array in its information starts")
    return there(f"a job with an array in its information: {ended or lines[2]}, PMIx_Init() of the process {init}")


@fault("F18")
def memory_left(scene):
    host = scene.host()
    scene.job(host)
    tmp = host.tmp
    clients = [scene.client(host, rank=rank) for rank in range(2)]
    during = shared(tmp)
    if not during:
        return fixed("no file of shared memory is made for a job")
    for rank, client in enumerate(clients):
        client.kill()
        host.must(f"forget job {rank}", "forgotten")
    host.must("forget job", "forgotten")
    time.sleep(1)
    left = shared(tmp)
    return there(f"{len(left)} of {len(during)} files stay when the job is deregistered") if left else fixed("no file stays")


def shared(folder):
    return [name for where, _, names in os.walk(folder) for name in names if "shmem" in name or "dstor" in where or "smseg" in name]


@fault("F19")
def source_of_an_event(scene):
    host = scene.host()
    channel = listener(scene, host)
    host.must(f"event-source {CODE}", "raised")
    try:
        data = channel.answer()[1]
    except (OSError, EOFError):
        return there("an event whose source is overwritten behind the call does not arrive")
    return fixed("the source is that of the call") if b"right\0" in data else there("the source is read behind the call")


@fault("F20")
def numbers_of_keys(scene):
    host = scene.host()
    host.must("job job here 0 1 own.first=one own.second=two", "job 0")
    host.must("client job 0", "registered 0")
    client = scene.client(host)
    got = []
    for key in ("own.second", "own.first"):
        answer = client.ask(f"get {key} = -2", "got (.*)", 4)
        got.append(answer.group(1) if answer else "no answer")
        if answer is None:
            break
    return fixed("each key's value is found") if got == ["0 two", "0 one"] else there(f"of values two and one: {', '.join(got)}")


@fault("F23")
def of_another_process(scene):
    key, host = exchanged(scene), scene.host()
    scene.job(host)
    scene.client(host).must(f"put {key} value", "put 0 0")
    answer = scene.tool(host).ask(f"get {key} job 0", "got (.*)", 4)
    got = answer.group(1) if answer else "no answer"
    return fixed("a tool finds the value of a process") if got == "0 value" else there(f"a tool asks for the value of a process: {got}")


@fault("F25")
def long_description(scene):
    tool = scene.tool(scene.host())
    longest = tool.ask("print-attribute", r"longest (\S+)")
    ended = tool.ended(0.5)
    if ended or longest is None:
        return there(f"{ended or 'no answer'} of the tool")
    if longest.group(1) == "none":
        return inapplicable("there is no pmix_attributes_print_attrs()")
    return fixed(f"the longest line has {longest.group(1)} characters")
