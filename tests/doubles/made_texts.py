"""Documents of text formats, drawn by a seed, and what independent programs read in them."""

from __future__ import annotations

import csv
import html
import io
import json
import random

WORDS = """
house river Straße naïve small green табло 개 café wind over under through it's light
a of and the stone bird keeps falling winter morning
""".split()  # noqa: SIM905


class Maker:
    """Draws text."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def words(self, least: int = 1, most: int = 8) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(least, most)))

    def sentence(self) -> str:
        text = self.words(2, 12)
        return text[:1].upper() + text[1:] + self.random.choice(".!?")

    def one_of(self, *made: str) -> str:
        return self.random.choice(made)

    def chance(self, share: float = 0.5) -> bool:
        return self.random.random() < share

    def newline(self) -> str:
        return "\r\n" if self.chance(0.25) else "\n"

    def encoded(self, text: str) -> bytes:
        encoding = self.one_of("utf-8", "utf-8", "utf-8-sig", "utf-16")
        return text.encode(encoding)


def txt(seed: int) -> bytes:
    make = Maker(seed)
    paragraphs = []
    for _ in range(make.random.randint(0, 6)):
        lines = [make.sentence() for _ in range(make.random.randint(1, 3))]
        paragraphs.append(make.one_of("", "  ", "\t") + "\n".join(lines) + make.one_of("", " "))
    text = make.one_of("\n\n", "\n \n\n").join(paragraphs) + make.one_of("", "\n", "\n\n")
    return make.encoded(text.replace("\n", make.newline()))


def markdown(seed: int) -> bytes:
    make = Maker(seed)

    def inline() -> str:
        pieces = []
        for _ in range(make.random.randint(1, 5)):
            text = make.words(1, 4)
            pieces.append(
                make.one_of(
                    text, text, text, f"**{text}**", f"*{text}*", "`code span`", "snake_case_name",
                    f"[{text}](http://a.example/b_c)", f'[{text}](/x "{make.words()}")', "\\*",
                    f"![{text}](pic.png)", "AT&amp;T", "<b>raw</b>", "https://a.example/x_y?z=1",
                )
            )  # fmt: skip
        return " ".join(pieces)

    blocks = []
    for _ in range(make.random.randint(1, 8)):
        blocks.append(
            make.one_of(
                f"{'#' * make.random.randint(1, 4)} {inline()}",
                inline() + "\n" + make.words(),
                f"- {inline()}\n- {inline()}\n\n  {inline()}",
                f"1. {inline()}\n2. {inline()}",
                f"> {inline()}\n> {make.words()}",
                f"```python\nx = '{make.words()}'\n```",
                f"{make.words()}\n=====",
                f"| {make.words()} | {make.words()} |\n|---|---|\n| {inline()} | 12 |",
                "---",
                f"{make.words()}  \n{make.words()}",
                f"<div>\n{make.words()}\n</div>",
            )
        )
    front = f"---\ntitle: {make.words()}\n---\n\n" if make.chance(0.2) else ""
    text = front + "\n\n".join(blocks) + make.one_of("", "\n")
    return text.replace("\n", make.newline()).encode()


def page(seed: int) -> bytes:
    make = Maker(seed)

    def inline() -> str:
        return " ".join(
            make.one_of(
                html.escape(make.words(), quote=False),
                f"<b>{make.words()}</b>",
                f'<a href="/x?a=1&b=2">{make.words()}</a>',
                "&copy; &nbsp; 2020",
                f"<i>{make.words()} <u>{make.words()}</u></i>",
                "<code>ls -l</code>",
                "<br>",
                f"<img src=x.png alt='{make.words().replace(chr(39), '')}'>",
            )
            for _ in range(make.random.randint(1, 5))
        )

    blocks = [
        make.one_of(
            f"<p>{inline()}</p>",
            f'<h2 title="{make.words()}">{inline()}</h2>',
            f"<ul><li>{inline()}<li>{inline()}</ul>",
            f"<table><tr><td>{inline()}</table>",
            "<script>var a = '<p>no</p>';</script>",
            f"<!-- {make.words()} -->",
            f"<pre>{make.words()}</pre>",
            f"<p translate=no>{make.words()}</p>",
        )
        for _ in range(make.random.randint(1, 8))
    ]
    head = '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    head += f"<title>{make.words()}</title>"
    body = "\n  ".join(blocks)
    return f"{head}</head>\n<body>\n{body}\n</body></html>\n".replace("\n", make.newline()).encode()


def po(seed: int) -> bytes:
    make = Maker(seed)

    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        if make.chance(0.2) and " " in escaped:
            first, _, rest = escaped.partition(" ")
            return f'""\n"{first} "\n"{rest}"'
        return f'"{escaped}"'

    def message() -> str:
        return make.one_of(
            make.words(), make.sentence(), f"{make.words()} %(name)s {make.words()}",
            f"{{0}} {make.words()} {{1}}", f'{make.words()} "{make.words()}"\n', "100 %",
            f"<b>{make.words()}</b> {make.words()}", f"{make.words()} %d",
        )  # fmt: skip

    plurals = make.random.randint(1, 4)
    header = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
        f'"Plural-Forms: nplurals={plurals}; plural=0;\\n"'
    )
    entries = [header]
    for number in range(make.random.randint(1, 8)):
        entry = make.one_of("", f"# {make.words()}\n", "#: src/a.c:12\n")
        entry += make.one_of("", "", "#, c-format\n", "#, fuzzy\n")
        entry += f'msgctxt "{number}"\n'
        if make.chance(0.25):
            entry += f"msgid {quoted(make.words())}\nmsgid_plural {quoted('%d ' + make.words())}\n"
            forms = make.random.choice([2, plurals])
            entry += "\n".join(f'msgstr[{n}] ""' for n in range(forms))
        else:
            entry += f"msgid {quoted(message())}\n"
            entry += make.one_of('msgstr ""', f"msgstr {quoted(make.words())}")
        entries.append(entry)
    if make.chance(0.3):
        entries.append(f'#~ msgid "{make.words()}"\n#~ msgstr ""')
    return ("\n\n".join(entries) + "\n").replace("\n", make.newline()).encode()


def subtitles(seed: int, *, vtt: bool) -> bytes:
    make = Maker(seed)
    mark = "." if vtt else ","
    cues = []
    for number in range(make.random.randint(1, 10)):
        text = make.one_of(
            make.sentence(), make.words(), f"<i>{make.sentence()}</i>",
            f"{make.words()}\n{make.words()}", f"- {make.sentence()}\n- {make.sentence()}",
            "♪ 12 ♪", f"{make.words()} <b>{make.words()}</b>,",
        )  # fmt: skip
        if vtt:
            text = text.replace("wind", "R&amp;B")
        begin = f"00:00:{number * 5:02d}{mark}000 --> 00:00:{number * 5 + 4:02d}{mark}500"
        cues.append(
            f"{number + 1}\n{begin}{make.one_of('', ' align:start') if vtt else ''}\n{text}\n"
        )
    head = f"WEBVTT\n\nNOTE {make.words()}\n\n" if vtt else ""
    text = head + "\n".join(cues)
    return make.encoded(text.replace("\n", make.newline())) if not vtt else text.encode()


def xliff(seed: int) -> bytes:
    make = Maker(seed)
    is_2 = make.chance()
    number = 0

    def inline() -> str:
        nonlocal number
        number += 1
        text = html.escape(make.words(), quote=False)
        if is_2:
            return make.one_of(
                text, text, f'<pc id="{number}">{text}</pc>', f'<ph id="{number}"/>',
                f'<sc id="{number}"/>{text}<ec startRef="{number}"/>', f"{{0}} {text}",
            )  # fmt: skip
        return make.one_of(
            text, text, f'<g id="{number}">{text}</g>', f'<x id="{number}"/>',
            f'<bpt id="{number}">&lt;b></bpt>{text}<ept id="{number}">&lt;/b></ept>',
            f'<ph id="{number}">{{n}}</ph>', f"%s {text}", f'<mrk mtype="protected">{text}</mrk>',
        )  # fmt: skip

    def source() -> str:
        return " ".join(inline() for _ in range(make.random.randint(1, 4)))

    units = []
    for n in range(make.random.randint(1, 6)):
        if is_2:
            state = make.one_of("", ' state="initial"', ' state="final"')
            target = make.one_of("", "<target/>") if "final" not in state else "<target>x</target>"
            no = make.one_of("", "", ' translate="no"')
            units.append(
                f'<unit id="{n}"{no}>\n  <segment{state}>\n    <source>{source()}</source>{target}'
                "</segment></unit>"
            )
        else:
            target = make.one_of(
                "", "<target/>", '\n<target state="new"></target>', "<target>x</target>",
                '<target state="final">x</target>',
            )  # fmt: skip
            no = make.one_of("", "", ' translate="no"', ' approved="yes"')
            units.append(
                f'<trans-unit id="{n}"{no}>\n    <source>{source()}</source>{target}</trans-unit>'
            )
    body = "\n".join(units)
    if is_2:
        text = (
            '<xliff version="2.0" srcLang="en" xmlns="urn:oasis:names:tc:xliff:document:2.0">'
            f'<file id="f">\n{body}\n</file></xliff>'
        )
    else:
        text = (
            '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" '
            f'source-language="en" datatype="plaintext"><body>\n{body}\n</body></file></xliff>'
        )
    encoding = make.one_of("utf-8", "utf-16", "utf-8-sig")
    declared = encoding.removesuffix("-sig")
    return f'<?xml version="1.0" encoding="{declared}"?>\n{text}\n'.encode(encoding)


def tmx(seed: int) -> bytes:
    make = Maker(seed)

    def seg() -> str:
        text = html.escape(make.words(), quote=False)
        return make.one_of(
            text, f"{text} <hi>{text}</hi>", f"{text}<ph/> {text}",
            f'<bpt i="1">&lt;b></bpt>{text}<ept i="1">&lt;/b></ept>',
        )  # fmt: skip

    entries = []
    for _ in range(make.random.randint(1, 6)):
        french = "<tuv xml:lang='fr'><seg>x</seg></tuv>" if make.chance() else ""
        german = '<tuv xml:lang="de-DE"><seg>x</seg></tuv>' if make.chance(0.3) else ""
        entries.append(
            f'<tu>\n  <tuv xml:lang="en"><seg>{seg()}</seg></tuv>{french}{german}\n</tu>'
        )
    body = "\n".join(entries)
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
        f'<tmx version="1.4"><header srclang="en"/><body>\n{body}\n</body></tmx>\n'
    ).encode()


def json_messages(seed: int) -> bytes:
    make = Maker(seed)

    def value(depth: int) -> object:
        kind = make.random.randint(0, 7 if depth < 3 else 5)
        if kind == 6:
            return {make.words(1, 2): value(depth + 1) for _ in range(make.random.randint(0, 3))}
        if kind == 7:
            return [value(depth + 1) for _ in range(make.random.randint(0, 3))]
        return [
            make.words(), f"{make.words()} {{{{name}}}} {make.words()}", 12, None, True,
            f'{make.words()}\n"{make.words()}" \\ \u2028',
        ][kind]  # fmt: skip

    content = {"key": value(0), "other key": value(0), "@note": {"description": make.words()}}
    text = json.dumps(content, indent=make.one_of("", "  "), ensure_ascii=make.chance())
    return (text.replace("\n", make.newline()) + make.one_of("", "\n")).encode()


def yaml_messages(seed: int) -> bytes:
    make = Maker(seed)
    lines = ["# a comment", "en:"]
    for number in range(make.random.randint(1, 6)):
        text = make.words().replace("it's", "its")
        lines.append(
            f"  key_{number}: "
            + make.one_of(
                text, f'"{text}: {text}"', f"'it''s {text}'", f"{text} %{{name}} {text}", "12",
                f"[{make.words()}, {make.words()}]", "true",
                make.one_of("|", "|-", ">", ">+")
                + f"\n    {text}\n    {text}\n\n    - {text}",
                f"{text}  # {text}", f"&a{number} plain words", f"\n    deeper: {text}",
            )
        )  # fmt: skip
    return ("\n".join(lines) + "\n").encode()


def table(seed: int) -> bytes:
    make = Maker(seed)
    delimiter = make.one_of(",", ";", "\t")
    file = io.StringIO()
    quoting = make.random.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=make.newline())
    for _ in range(make.random.randint(1, 6)):
        writer.writerow(
            [
                make.words(), make.random.randint(0, 99), f'{make.words()}, "{make.words()}"',
                f"{make.words()}\n{make.words()}", "", "https://a.example/x",
            ]
        )  # fmt: skip
    return make.one_of("", "\ufeff").encode() + file.getvalue().encode()
