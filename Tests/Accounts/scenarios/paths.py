"""Spellings of paths through signatures: uploaded by an SDK, read through Larder."""

import urllib.parse

from mocks.base import content
from mocks.objects import SIZE, Accounts, ObjectStore
from trial import quoted

from . import scenario
from .s3 import require

#: Keys of objects; each is read with all but unreserved characters encoded, and once as it is where HTTP allows it.
KEYS = [
    "plain.bin", "with space.bin", " leading.bin", "trailing .bin", "two  spaces.bin", "plus+plus.bin", "a=b.bin",
    "=leading.bin", "tilde~.bin", "under_score-dash.bin", "percent%.bin", "percent%20twenty.bin", "percent%2Fslash.bin",
    "percent%25percent.bin", "umlaut-äöüß.bin", "kirillica-фильм.bin", "kanji-映画.bin", "emoji-🎬.bin", "combining-e\u0301.bin",
    "quote'single.bin", 'quote"double.bin', "back`tick.bin", "round(1).bin", "square[1].bin", "curly{1}.bin", "angle<1>.bin",
    "pipe|.bin", "caret^.bin", "hash#1.bin", "question?.bin", "amp&and.bin", "semi;colon.bin", "comma,comma.bin", "colon:.bin",
    "at@sign.bin", "dollar$.bin", "bang!.bin", "star*.bin", "dots...bin", "trailing-dots..", ".hidden", "deep/er/path.bin",
    "a//double.bin", "folder.d/..x/file.bin", "UPPER-lower.BIN", "ends-with-slash/x", "0", "nbsp-\u00a0.bin",
]  # fmt: skip
#: Characters that a path may have as they are (RFC 3986 pchar).
RAW = "/-._~!$&'()*+,;=:@"


def spellings(key):
    """The request targets for a key: encoded, with raw sub-delimiters, and with lower-case hexadecimal digits."""
    full = quoted(key)
    raw = urllib.parse.quote(key, safe=RAW)
    first, *escaped = full.split("%")
    lower = "%".join([first, *(part[:2].lower() + part[2:] for part in escaped)])
    return list(dict.fromkeys([full, raw, lower]))


def compare(t, service, origin, data):
    """Reads all keys in all spellings; returns the number of reads."""
    count = 0
    for key, expected in data.items():
        for path in spellings(key)[: 1 if t.is_brief else None]:
            count += 1
            t.bytes(service.read(f"/o/{origin}/{path}"), expected, f"{origin}: {key!r} as {path}")
            t.bytes(service.read(f"/o/{origin}/{path}", "7-77"), expected[7:78], f"{origin}: a range of {path}", 206)
    return count


def static(keys):
    return {
        "auth_type": "s3",
        "auth_credentials": "static",
        "auth_accessKeyId": keys.access_key,
        "auth_secretAccessKey": keys.secret,
    }


@scenario()
def spellings_of_paths(t):
    """Forty spellings through a strict verifier of signatures."""
    accounts = Accounts(t.vault)
    store, keys = t.mock(ObjectStore(accounts)), accounts.permanent()
    service = t.service(t.origin("media", f"{store.url}/media", **static(keys)))
    require(len(KEYS) >= 40, "there are fewer than 40 keys")
    count = compare(t, service, "media", {key: content(key, SIZE) for key in KEYS})
    t.equal(store.codes(), [], "the refusals of the store")
    t.note(f"{len(KEYS)} keys in {count} spellings")


def upload(t, s3, bucket):
    """Uploads all keys that the store accepts; returns key → bytes."""
    uploaded, refused = {}, []
    for key in KEYS:
        data = content(key, 4000)
        try:
            s3.put_object(Bucket=bucket, Key=key, Body=data)
            if s3.get_object(Bucket=bucket, Key=key)["Body"].read() == data:
                uploaded[key] = data
                continue
        except Exception as error:
            refused.append(f"{key!r} ({type(error).__name__})")
            continue
        refused.append(f"{key!r} (other bytes)")
    if refused:
        t.note(f"the store itself fails for {len(refused)} keys: {', '.join(refused)}")
    t.check(len(uploaded) >= 40, f"the SDK uploaded only {len(uploaded)} keys")
    return uploaded


@scenario(needs=["moto"], brief=False)
def spellings_moto(t):
    """Forty spellings through moto, uploaded by boto3."""
    moto = t.tools.Moto(t)
    uploaded = upload(t, moto.s3, moto.bucket)
    service = t.service(t.origin("moto", f"{moto.url}/{moto.bucket}", **static(moto)))
    t.note(f"{compare(t, service, 'moto', uploaded)} reads")


@scenario(needs=["seaweedfs"], brief=False)
def spellings_seaweed(t):
    """Forty spellings through SeaweedFS, uploaded by boto3."""
    weed = t.tools.SeaweedFS(t)
    uploaded = upload(t, weed.s3, weed.bucket)
    service = t.service(t.origin("weed", f"{weed.url}/{weed.bucket}", **static(weed)))
    t.note(f"{compare(t, service, 'weed', uploaded)} reads")
    wrong = {**static(weed), "auth_secretAccessKey": t.vault.new("secretAccessKey"), "retries": 0}
    service = t.service(t.origin("weed", f"{weed.url}/{weed.bucket}", **wrong))
    t.refused(service.read("/o/weed/plain.bin"), "a read with a wrong key", (403, 502))
