"""Times of jobs: `notBefore` and windows in time zones, compared with the zones of Python."""

import datetime
import random
import signal
import time
import zoneinfo

from change import MIB, item, patch, start
from deadlines import instant, seconds_of
from harness.clock import Clock
from shaped import Shaped

CASES = []
#: Zones with other rules of daylight saving time, or none: the southern hemisphere, half hours, changes of half an hour.
ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Santiago", "UTC",
         "Pacific/Apia", "Africa/Casablanca", "Europe/Dublin", "America/St_Johns", "Asia/Tehran"]  # fmt: skip
UTC = datetime.timezone.utc
MINUTE = 60


def case(function):
    CASES.append(function)
    return function


def local(at, zone):
    """The local time as text, with which times of one day are compared."""
    return datetime.datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d %H:%M")


def spans(day, begin, end, zone):
    """The seconds of a window that begins on a local day, found by the clocks of each minute."""
    next_day = day + datetime.timedelta(days=1)
    first, last = f"{day} {begin}", f"{next_day if end <= begin else day} {end}"
    if end == "24:00":
        last = f"{next_day} 00:00"
    middle = int(datetime.datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    minutes = range(middle - 20 * 3600, middle + 64 * 3600, MINUTE)
    clocks = [(at, local(at, zone)) for at in minutes]
    starts = min(at for at, clock in clocks if clock >= first)
    ends = max(at for at, clock in clocks if clock < last) + MINUTE
    return (starts, ends) if starts < ends else None


def next_run(at, windows):
    """The first time from `at` on that is inside one of the windows."""
    found = []
    for begin, end, name in windows:
        zone = zoneinfo.ZoneInfo(name)
        today = datetime.datetime.fromtimestamp(at, zone).date()
        for days in range(-1, 3):
            span = spans(today + datetime.timedelta(days=days), begin, end, zone)
            if span and span[1] > at:
                found.append(max(at, span[0]))
    return min(found)


def changes(name, year):
    """The days of a year on which the offset of a zone changes."""
    zone, day = zoneinfo.ZoneInfo(name), datetime.datetime(year, 1, 1, tzinfo=UTC)
    found = []
    for _ in range(366):
        other = day + datetime.timedelta(days=1)
        if day.astimezone(zone).utcoffset() != other.astimezone(zone).utcoffset():
            found.append(day)
        day = other
    return found


@case
def zones(check, program, directory):
    """The next run of jobs with windows is that of Python's zones, around changes of daylight saving time too."""
    service = start(program, directory, Shaped(MIB))
    choice, wrong, count = random.Random(1), [], 0
    for name in ZONES:
        instants = [choice.randrange(1_830_000_000, 2_140_000_000, MINUTE) for _ in range(4)]
        for year in (2028, 2033, 2041):
            for day in changes(name, year):
                instants += [int(day.timestamp()) + choice.randrange(-1440, 2 * 1440) * MINUTE for _ in range(4)]
        for at in instants:
            begin, end = choice.choice([
                ("01:00", "06:00"), ("23:30", "02:15"), ("02:15", "02:45"), ("02:30", "03:30"), ("22:00", "24:00"),
                ("00:00", "00:30"), ("12:00", "11:59"),
            ])  # fmt: skip
            text = f"{begin}-{end} {name}"
            job = service.job(item(MIB), notBefore=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)), windows=[text])
            found = service.get(f"/v1/jobs/{job}")
            if found["waitingFor"] != "notBefore" or seconds_of(found["nextRunAt"]) != next_run(at, [(begin, end, name)]):
                wrong.append((text, found["notBefore"], found["nextRunAt"], next_run(at, [(begin, end, name)])))
            count += 1
            service.call("DELETE", f"/v1/jobs/{job}")
    check.note(f"{count} windows in {len(ZONES)} zones compared")
    check(not wrong, f"{len(wrong)} of {count} next runs differ", "\n".join(map(str, wrong[:8])))


@case
def window(check, program, directory):
    """A job runs inside its window only: it stops at the end, over a kill too, and starts at the next begin."""
    zone, end = zoneinfo.ZoneInfo("Asia/Kathmandu"), int(datetime.datetime(2027, 3, 28, 1, tzinfo=UTC).timestamp())
    watch, upstream = Clock(directory, end - 300), Shaped(MIB)
    service = start(program, directory, upstream, environment=watch.environment)
    minute = lambda at: datetime.datetime.fromtimestamp(at, zone).strftime("%H:%M")  # noqa: E731
    job = service.job(item(300 * MIB), windows=[f"{minute(end - 600)}-{minute(end)} Asia/Kathmandu",
                                               f"{minute(end + 60)}-{minute(end + 600)} Asia/Kathmandu"])  # fmt: skip
    state = lambda: service.get(f"/v1/jobs/{job}")  # noqa: E731
    check.eventually(lambda: state()["bytesDone"] > 0, "the job does not run in its window")
    watch.set(end - 3)
    check.eventually(lambda: state()["waitingFor"] == "window", "the job does not stop at the end of its window")
    check(0 <= watch.now() - end < 2, f"it stops {watch.now() - end:.1f} s after the end")
    found = state()
    check.equal((found["state"], seconds_of(found["nextRunAt"])), ("queued", end + 60), "state")
    check.eventually(lambda: service.get("/v1/fills")["items"] == [], "a transfer goes on")
    done = found["bytesDone"]
    check.eventually(lambda: service.rows("SELECT bytes_from_upstream > 0 FROM job_items") == [(1,)], "the bytes are not saved")
    service.process.send_signal(signal.SIGKILL)
    service.wait()
    service.start()
    check.eventually(lambda: state()["waitingFor"] == "window", "the job does not wait after a kill", 10)
    check(state()["bytesFromUpstream"] > 0, "no bytes after a kill")
    watch.set(end + 57)
    check.eventually(lambda: state()["state"] == "running", "the job does not go on in the next window")
    check(abs(watch.now() - end - 60) < 2, f"it goes on {watch.now() - end - 60:.1f} s after the begin")
    check.eventually(lambda: state()["bytesDone"] > done, "no bytes arrive", 30)
    patch(service, job, {"windows": None})
    check.equal(state()["windows"], [], "windows after their removal")
    service.call("DELETE", f"/v1/jobs/{job}")


@case
def before(check, program, directory):
    """A job starts at `notBefore`; invalid times have errors of their own."""
    upstream = Shaped(8 * MIB)
    service = start(program, directory, upstream)
    at = time.time() + 4
    job = service.job(item(MIB), notBefore=instant(4))
    found = service.get(f"/v1/jobs/{job}")
    check.equal((found["state"], found["waitingFor"]), ("queued", "notBefore"), "state")
    done = service.finished(job)
    check.equal(done["state"], "succeeded", "state at the end")
    check(0 <= seconds_of(done["startedAt"]) - at + 0.05 < 1, f"it starts {seconds_of(done['startedAt']) - at:.2f} s late")
    job = service.job(item(2 * MIB), notBefore=instant(3600))
    patch(service, job, {"notBefore": None})
    check.equal(service.finished(job)["state"], "succeeded", "state of a job without its time")
    for windows, part in [
        (["01:00-06:00 Europe/Atlantis"], "time zone Europe/Atlantis is unknown"), (["01:00-01:00 UTC"], "window is empty"),
        (["1:00-2:00 UTC"], "A window such as"), (["25:00-26:00 UTC"], "A window such as"), ([""], "A window such as"),
        (["01:00-06:00 ../../etc/passwd"], "is unknown"), (["01:00-06:00"], "A window such as"),
    ]:  # fmt: skip
        reply = service.call("POST", "/v1/jobs", {"items": [item(MIB)], "windows": ["00:00-24:00 UTC", *windows]})
        check.equal((reply.status, reply.json.get("field")), (422, "windows[1]"), f"{windows}")
        check(part in reply.json.get("detail", ""), f"{windows}", reply.json)
