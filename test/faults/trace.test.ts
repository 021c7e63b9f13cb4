import { describe, expect, it } from "vitest";
import { DurabilityModel } from "./durability.ts";
import { parseTrace, stringOf } from "./trace.ts";

describe("trace parser", () => {
  it("reads calls, errors and injected errors", () => {
    const calls = parseTrace(
      [
        '41  openat(AT_FDCWD</tmp>, "/d/a,b(c", O_WRONLY|O_CREAT, 0666) = 21</d/a,b(c>',
        '41  write(21</d/x>, "a\\"b\\n\\0c"..., 7) = 7',
        "41  fsync(21</d/x>)                   = -1 EIO (Input/output error) (INJECTED)",
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
        "41  +++ exited with 0 +++",
        "",
      ].join("\n"),
    );
    expect(calls).toEqual([
      {
        thread: 41,
        name: "openat",
        args: ["AT_FDCWD</tmp>", '"/d/a,b(c"', "O_WRONLY|O_CREAT", "0666"],
        result: "21",
        start: 0,
        end: 0,
      },
      { thread: 41, name: "write", args: ["21</d/x>", '"a\\"b\\n\\0c"...', "7"], result: "7", start: 1, end: 1 },
      { thread: 41, name: "fsync", args: ["21</d/x>"], result: "-1", error: "EIO", start: 2, end: 2 },
    ]);
    expect(stringOf(calls[1]?.args[1])).toBe('a"b\n\0c');
  });

  it("joins the halves of calls that overlap, by thread", () => {
    const calls = parseTrace(
      [
        "1 fsync(20</d/a> <unfinished ...>",
        '2 write(21</d/b>, "x", 1 <unfinished ...>',
        "1 <... fsync resumed>)              = 0",
        "2 <... write resumed>)              = 1",
        "3 read(5</d/c>,  <unfinished ...>",
        '3 <... read resumed>"data", 100)   = 4',
      ].join("\n"),
    );
    expect(calls.map((c) => [c.name, c.args, c.result, c.start, c.end])).toEqual([
      ["fsync", ["20</d/a>"], "0", 0, 2],
      ["write", ["21</d/b>", '"x"', "1"], "1", 1, 3],
      ["read", ["5</d/c>", '"data"', "100"], "4", 4, 5],
    ]);
  });
});

describe("durability model", () => {
  const CREATE = '1 openat(AT_FDCWD</>, "/d/f/t", O_WRONLY|O_CREAT|O_EXCL, 0666) = 9</d/f/t>';
  const WRITE = '1 write(9</d/f/t>, "x", 1) = 1';
  const SYNC_FILE = "1 fsync(9</d/f/t>) = 0";
  const MAKE = '1 mkdir("/d/f", 0777) = 0';
  const SYNC_PARENT = "1 fsync(8</d>) = 0";
  const RENAME = '1 rename("/d/f/t", "/d/f/x") = 0';
  const SYNC_FOLDER = "1 fsync(8</d/f>) = 0";
  const GOOD = [MAKE, SYNC_PARENT, CREATE, WRITE, SYNC_FILE, RENAME, SYNC_FOLDER];

  it("accepts the full protocol", () => {
    expect(problems(...GOOD)).toBe("");
  });

  it.each([
    ["the file's sync", SYNC_FILE, "the bytes of /d/f/x are not synced"],
    ["the folder's sync", SYNC_FOLDER, "the name /d/f/x is not synced in its folder"],
    ["the ancestor's sync", SYNC_PARENT, "the name /d/f is not synced in its folder"],
  ])("misses %s", (_what, left, expected) => {
    expect(problems(...GOOD.filter((line) => line !== left))).toBe(expected);
  });

  it.each([
    [SYNC_FILE, "the bytes of /d/f/x are lost"],
    [SYNC_FOLDER, "the name /d/f/x is lost"],
    [SYNC_PARENT, "the name /d/f is lost"],
  ])("does not let a second sync make up for a failed one: %s", (sync, expected) => {
    const failing = GOOD.flatMap((line) => (line === sync ? [sync.replace("= 0", "= -1 EIO (x)"), sync] : [line]));
    expect(problems(...failing)).toBe(expected);
  });

  it("does not count a sync that began before the rename ended", () => {
    const lines = GOOD.filter((line) => line !== SYNC_FOLDER && line !== RENAME);
    lines.push("2 fsync(8</d/f> <unfinished ...>", RENAME, "2 <... fsync resumed>) = 0");
    expect(problems(...lines)).toBe("the name /d/f/x is not synced in its folder");
  });

  it("lists what is unsafe below a folder", () => {
    const model = new DurabilityModel();
    model.apply(parseTrace([MAKE, CREATE, WRITE].join("\n")));
    expect(model.unsafeBelow("/d")).toEqual(["/d/f", "/d/f/t"]);
  });
});

function problems(...lines: string[]): string {
  const model = new DurabilityModel();
  model.apply(parseTrace(lines.join("\n")));
  return model.problemsOf("/d/f/x").join("; ");
}
