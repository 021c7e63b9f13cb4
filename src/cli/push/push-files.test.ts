import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { asNobody } from "../../core/as-nobody.test-kit.ts";
import { runChild, runHere, runOnTerminal } from "../cli.test-kit.ts";
import { FakeEngine, refuse } from "./push.test-kit.ts";

const PUSH = ["ingest", "push", "--table", "events"];

/** A folder with these files, which is gone when the test is done. */
function folderOf(files: Record<string, string | Buffer>): string {
  const folder = mkdtempSync(join(tmpdir(), "push-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), content);
  }
  return folder;
}

async function started(hooks?: Parameters<FakeEngine["start"]>[0]) {
  const engine = new FakeEngine();
  return { engine, env: await engine.start(hooks) };
}

/** Rows of about 1 kB. */
function rowsOf(count: number, tag = ""): string {
  const pad = "x".repeat(1_000);
  return Array.from({ length: count }, (_, i) => `${JSON.stringify({ i, tag, pad })}\n`).join("");
}

describe("files", () => {
  test("of all kinds are sent by what they hold, each once", async () => {
    const { engine, env } = await started();
    const folder = folderOf({
      "a.ndjson": '{"n":1}\n',
      "b.csv": "n,s\n2,x\n",
      "c.tsv.gz": gzipSync("n\ts\n3\ty\n"),
      "d.json": zstdCompressSync('\ufeff{"n":4}\n'),
      // Its name is wrong, and its content is clear.
      "e.csv": '{"n":5}\n',
    });
    const paths = ["a.ndjson", "b.csv", "c.tsv.gz", "d.json", "e.csv", "a.ndjson"].map((name) => join(folder, name));
    const { code, stdout, stderr } = await runHere([...PUSH, ...paths], { env });
    expect([code, stderr]).toEqual([0, ""]);
    expect(engine.stored).toEqual(['{"n":1}', '{"n":"2","s":"x"}', '{"n":"3","s":"y"}', '{"n":4}', '{"n":5}']);
    const lines = stdout.trimEnd().split("\n");
    expect(lines).toHaveLength(6);
    expect(lines[1]).toMatch(/\/b\.csv: 1 row, /);
    expect(lines[5]).toMatch(/^together 5 rows, .+, 5 requests, snapshot 5$/);
  });

  test("in folders are found by their names, in their order; links in a circle are no endless way, and none leads out", async () => {
    const { engine, env } = await started();
    const folder = folderOf({
      "b/2.ndjson": '{"n":2}',
      "a/1.jsonl.gz": gzipSync('{"n":1}'),
      "c.csv": "n\n3\n",
      "notes.txt": "no rows",
      ".hidden.ndjson": '{"n":0}',
      "empty.ndjson": "",
    });
    symlinkSync("..", join(folder, "b", "up"));
    symlinkSync(folder, join(folder, "a", "again"));
    // Whoever unpacked the folder need not know where its links lead.
    symlinkSync(join(folderOf({ "secret.ndjson": '{"n":9}' }), "secret.ndjson"), join(folder, "a", "x.ndjson"));
    const { code, stdout, stderr } = await runHere([...PUSH, folder], { env });
    expect(code).toBe(0);
    expect(engine.stored).toEqual(['{"n":1}', '{"n":2}', '{"n":"3"}']);
    expect(stdout).toContain("together 3 rows");
    expect(stderr).toContain("warning: 2 files were left out: the name says nothing");
    expect(stderr).toMatch(/warning: .+\/empty\.ndjson has no rows\n/);
  });

  test("can be named by a pattern; one with such a name is itself", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "x/1.ndjson": '{"n":1}', "x/y/2.ndjson": '{"n":2}', "[3].ndjson": '{"n":3}' });
    await runHere([...PUSH, join(folder, "**", "*[12].ndjson"), join(folder, "[3].ndjson")], { env });
    expect(engine.stored).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
  });

  test("that are not there stop it before anything is sent", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "a.ndjson": '{"n":1}' });
    for (const name of ["gone.ndjson", "*.nothing"]) {
      const { code, stderr } = await runHere([...PUSH, join(folder, "a.ndjson"), join(folder, name)], { env });
      expect([code, engine.attempts.length]).toEqual([2, 0]);
      expect(stderr).toMatch(/^error: (there is no file|no file matches) .+; nothing was sent\n$/);
    }
    const none = await runHere([...PUSH, folderOf({ "a.txt": "" })], { env });
    expect([none.code, none.stderr]).toEqual([
      2,
      "error: no file there has the name of NDJSON, CSV or Parquet; nothing was sent\n",
    ]);
  });

  test("and standard input can be mixed", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "a.ndjson": '{"n":1}' });
    const { code } = await runHere([...PUSH, "-", join(folder, "a.ndjson")], { env, input: gzipSync('{"n":0}\n') });
    expect([code, engine.stored]).toEqual([0, ['{"n":0}', '{"n":1}']]);
  });
});

describe("a file that is pushed again", () => {
  test("is stored once, by whatever path it is named; another with the same rows is stored too", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "a.ndjson": '{"n":1}\n', "b.ndjson": '{"n":1}\n' });
    symlinkSync("a.ndjson", join(folder, "link.ndjson"));
    for (const name of ["a.ndjson", "a.ndjson", "./a.ndjson", "link.ndjson"]) {
      expect((await runHere([...PUSH, `${folder}/${name}`], { env })).code).toBe(0);
    }
    expect(engine.stored).toHaveLength(1);
    const { stdout } = await runHere([...PUSH, folder], { env });
    expect(engine.stored).toHaveLength(2);
    expect(stdout).toMatch(/\/a\.ndjson: .+; 1 of the rows were stored before\n/);
  });

  test("goes on where it failed", async () => {
    let failing = true;
    const { engine, env } = await started({
      before: (attempt, response) =>
        failing && attempt === 2 && refuse(response, 400, { code: "bad_request_body", message: "no", line: 3 }),
    });
    const folder = folderOf({ "a.ndjson": rowsOf(20_000) });
    const path = join(folder, "a.ndjson");
    const first = await runHere([...PUSH, path], { env });
    const stored = engine.stored.length;
    expect(first.code).toBe(1);
    expect(first.stderr).toBe(
      `error: line ${stored + 3} of ${path}: no (${stored} rows before it are stored; the same command goes on ` +
        "without storing them twice)\n",
    );
    failing = false;
    expect((await runHere([...PUSH, path], { env })).code).toBe(0);
    expect(engine.stored).toHaveLength(20_000);
  });

  test("has other keys under a key of the user's: by the path that was given", async () => {
    const { engine, env } = await started();
    const push = (folder: string, key: string) =>
      runChild([...PUSH, "--idempotency-key", key, `${folder}/a.ndjson`], { env });
    const [one, two] = [folderOf({ "a.ndjson": '{"n":1}' }), folderOf({ "a.ndjson": '{"n":1}' })];
    await push(one, "k");
    await push(one, "k");
    expect(engine.stored).toHaveLength(1);
    await push(one, "l");
    await push(two, "k");
    expect(engine.stored).toHaveLength(3);
  });

  test("is cut the same way, though the table has changed", async () => {
    const { engine, env } = await started({ before: (_, response) => refuse(response, 400, { message: "no" }) });
    const folder = folderOf({
      "a.csv": `n,j\n${Array.from({ length: 150_000 }, (_, i) => `${i},"{""k"":[${i}],""p"":""${"y".repeat(60)}""}"\n`).join("")}`,
    });
    const cuts = async (columns: FakeEngine["columns"]) => {
      engine.columns = columns;
      engine.attempts.length = 0;
      await runHere([...PUSH, folder], { env });
      return engine.attempts[0]?.body.split("\n").length;
    };
    const asTexts = await cuts(undefined);
    expect(asTexts).toBeGreaterThan(1_000);
    expect(asTexts).toBeLessThan(150_000);
    const asTyped = await cuts([
      { name: "n", type: "long" },
      { name: "J", type: "dynamic" },
    ]);
    expect(engine.attempts[0]?.body.split("\n")[0]).toMatch(/^\{"n":0,"j":\{"k":\[0\],/);
    expect(asTyped).toBe(asTexts);
  });
});

describe("one that fails", () => {
  test("does not keep the others from being sent; each says why", async () => {
    const { engine, env } = await started({
      before: (_, response, { body }) =>
        body.includes("poison") && refuse(response, 400, { code: "bad_request_body", message: "poisoned", line: 1 }),
    });
    const folder = folderOf({
      "1.ndjson": '{"n":1}\n',
      "2.ndjson": '{"poison":1}\n',
      "3.ndjson.gz": gzipSync(rowsOf(500)).subarray(0, 900),
      "4.csv": "a,b\n1\n",
      "5.json": "[1,2]",
      "6.json": Buffer.from("\ufeff{}", "utf16le"),
      "7.json": Buffer.concat([Buffer.from("BZh91AY"), Buffer.alloc(20)]),
      "8.csv": Buffer.from([1, 2, 0, 3]),
      "9.parquet": "no parquet at all",
      "10.ndjson": '{"n":10}\n',
    });
    symlinkSync("nowhere", join(folder, "broken.ndjson"));
    const { code, stdout, stderr } = await runHere([...PUSH, folder], { env });
    expect(code).toBe(1);
    expect(engine.stored).toEqual(['{"n":1}', '{"n":10}']);
    expect(stdout).toContain("together 2 rows");
    const said = stderr.replaceAll(`${folder}/`, "").trimEnd().split("\n");
    expect(said).toEqual([
      "error: line 1 of 2.ndjson: poisoned (nothing is stored)",
      expect.stringMatching(
        /^error: 3\.ndjson\.gz is broken: its gzip data cannot be decoded: .+ \(nothing is stored\)$/,
      ),
      "error: line 2 of 4.csv has 1 field, the header 2 (nothing is stored)",
      "error: 5.json is a JSON array, not NDJSON; make a line of each item, as by `jq -c '.[]'`",
      "error: 6.json is UTF-16; convert it, as by `iconv -f utf-16 -t utf-8`",
      "error: 7.json is compressed by bzip2; decompress it, as by `bzcat`",
      "error: 8.csv is no text: neither NDJSON nor CSV, nor Parquet",
      "error: 9.parquet is no Parquet file, whatever its name says",
      "error: cannot read broken.ndjson: it is not there (any more)",
      "error: 9 of 11 inputs failed",
    ]);
  });

  test("is in the summary, beside the others", async () => {
    const { env } = await started();
    const folder = folderOf({ "a.ndjson": '{"n":1}\n', "b.csv": "a\n1,2\n" });
    const { code, stdout } = await runHere([...PUSH, "--json", folder], { env });
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      rows: 1,
      idempotency_key: null,
      files: [
        { file: join(folder, "a.ndjson"), format: "ndjson", rows: 1, warnings: [], error: null },
        { file: join(folder, "b.csv"), format: "csv", rows: 0, error: expect.stringContaining("line 2 of") as string },
      ],
    });
  });

  test("for the server ends it all", async () => {
    const { engine, env } = await started({ before: (_, response) => refuse(response, 401, { message: "no token" }) });
    const folder = folderOf({ "a.ndjson": '{"n":1}', "b.ndjson": '{"n":2}' });
    const { code, stderr } = await runHere([...PUSH, folder], { env });
    expect([code, engine.attempts.length]).toEqual([4, 1]);
    expect(stderr).toContain("the server wants a token");
  });

  test("because it may not be read is told, and a folder too", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "a.ndjson": '{"n":1}', "b.ndjson": '{"n":2}', "c/d.ndjson": '{"n":3}' });
    chmodSync(join(folder, "a.ndjson"), 0);
    chmodSync(join(folder, "c"), 0);
    chmodSync(folder, 0o755);
    const { code, stderr } = await asNobody(() => runHere([...PUSH, folder], { env }));
    chmodSync(join(folder, "c"), 0o700);
    expect([code, engine.stored]).toEqual([1, ['{"n":2}']]);
    expect(stderr).toContain("a.ndjson: permission denied");
    expect(stderr).toContain("/c: permission denied");
  });

  test("because it was changed meanwhile is told; nothing of its last part is sent", async () => {
    const folder = folderOf({ "a.ndjson": rowsOf(20_000) });
    const path = join(folder, "a.ndjson");
    const { engine, env } = await started({
      before: (attempt) => {
        if (attempt === 1) writeFileSync(path, '{"late":1}\n', { flag: "a" });
        return false;
      },
    });
    const { code, stderr } = await runHere([...PUSH, path], { env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .+ was changed while it was read; push it again when nobody writes to it/);
    expect(engine.stored.length).toBeLessThan(20_000);
    expect((await runHere([...PUSH, path], { env })).code).toBe(0);
    expect(engine.stored).toHaveLength(20_001);
  });

  test("by a hostile name says it without its control characters", async () => {
    const { env } = await started();
    const folder = folderOf({ "\u001b[2J\nevil.csv": "a\n1,2\n", "b.ndjson": '{"n":1}' });
    for (const run of [runHere, runOnTerminal]) {
      const { stdout, stderr } = await run([...PUSH, folder], { env: { ...env, NO_COLOR: "1" } });
      expect(stderr).toContain("\\u001b[2J\\nevil.csv has 2 fields");
      // oxlint-disable-next-line no-control-regex -- it is what must not be there
      expect((stdout + stderr).replaceAll("\r\u001b[K", "")).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
    }
  });
});

test("warnings of the server are told for each file, with the line of the file", async () => {
  const { engine, env } = await started();
  engine.warnings = [
    { code: "at_unreadable", count: 2, first_line: 1 },
    { code: "kept_in_props", count: 1, first_line: 2, field: "n\u001b", type: "vector(2)\u0007" },
    { nonsense: true },
  ];
  const folder = folderOf({ "a.csv": 'at,n\n\n"x",1\n"y\nz",2\n' });
  const { code, stderr } = await runHere([...PUSH, folder], { env });
  expect(code).toBe(0);
  expect(stderr.replaceAll(`${folder}/`, "")).toBe(
    "warning: 2 rows have the time of arrival, for want of a time that can be read; the first is in line 3 of a.csv\n" +
      'warning: 1 value of "n\\u001b" did not fit vector(2)\\u0007 and is in props; the first is in line 4 of a.csv\n',
  );
});

describe("standard input", () => {
  test("is decoded by its content, and CSV where that is said", async () => {
    const { engine, env } = await started();
    for (const input of [gzipSync('{"n":1}\n'), zstdCompressSync('{"n":2}\n')]) await runHere(PUSH, { env, input });
    await runHere([...PUSH, "--format", "csv"], { env, input: gzipSync("n\n3\n") });
    await runHere([...PUSH, "--delimiter", "tab"], { env, input: "n\tm\n4\t5\n" });
    expect(engine.stored).toEqual(['{"n":1}', '{"n":2}', '{"n":"3"}', '{"n":"4","m":"5"}']);
  });

  test("that is cut off in its coding stores what came before, and says so", async () => {
    const { engine, env } = await started();
    const { code, stderr } = await runHere(PUSH, { env, input: gzipSync(rowsOf(20_000)).subarray(0, -20) });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: standard input is broken: its gzip data cannot be decoded: .+rows before it are/);
    expect(engine.stored.length).toBeGreaterThan(0);
  });
});

test.for(["ab", '"', "", "\n"])("--delimiter %j is refused", async (delimiter) => {
  const { code, stderr } = await runHere([...PUSH, "--delimiter", delimiter, "x.csv"]);
  expect(code).toBe(2);
  expect(stderr).toContain("--delimiter is one character of ASCII");
});

describe("a dry run", () => {
  test("shows the columns and the first rows, and sends nothing", async () => {
    const { engine, env } = await started();
    const folder = folderOf({ "a.csv": "at,name,n\n2026-01-02T03:04:05Z,\u001b[31mx,1\n" });
    const { code, stdout, stderr } = await runHere([...PUSH, "--dry-run", folder], { env });
    expect([code, stderr, engine.attempts.length]).toEqual([0, "", 0]);
    expect(stdout.replaceAll(`${folder}/`, "")).toBe(
      [
        "table default.events does not exist; it would be made",
        "COLUMN  TYPE",
        "──────  ─────────",
        "at      timestamp",
        "label   string",
        "body    string",
        "props   dynamic",
        "name    string",
        "n       string",
        "",
        "at                    name         n",
        "────────────────────  ───────────  ─",
        "2026-01-02T03:04:05Z  \\u001b[31mx  1",
        "(1 row)",
        "",
        "a.csv: csv, 1 row",
        "nothing was sent",
        "",
      ].join("\n"),
    );
  });

  test("knows the table, and what would be kept in props", async () => {
    const { engine, env } = await started();
    engine.columns = [
      { name: "at", type: "timestamp" },
      { name: "n", type: "long" },
      { name: "props", type: "dynamic" },
    ];
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`c${i}`, i]));
    const input = `${JSON.stringify({ timestamp: 1, N: 1, "a\nb": 1, ...many })}\n{"big":12345678901234567890}`;
    const { stdout } = await runHere([...PUSH, "--dry-run", "--json"], { env, input });
    const shown = JSON.parse(stdout) as { columns: { name: string; new: boolean }[]; kept_in_props: string[] };
    expect(shown.columns.filter((column) => column.new)).toHaveLength(32);
    expect(shown.kept_in_props).toEqual(["a\nb", ...Array.from({ length: 8 }, (_, i) => `c${32 + i}`), "big"]);
    expect(stdout).toContain('"big": 12345678901234567890');
    expect(engine.attempts).toHaveLength(0);
  });

  test("needs no server", async () => {
    const env = { ENGINE_SERVER_URL: "http://127.0.0.1:1" };
    const { code, stdout, stderr } = await runHere([...PUSH, "--dry-run"], { env, input: '{"a":1}' });
    expect(code).toBe(0);
    expect(stdout).toContain("a       long");
    expect(stderr).toMatch(/^warning: no engine answers .+ what follows is that of a table that does not exist\n$/);
  });

  test("tells the types that the values of each input's first request would give new columns", async () => {
    const folder = folderOf({
      "a.ndjson": '{"n":1,"r":0.5,"none":null,"when":"2026-01-02T03:04:05Z","label":7}\n{"n":2,"N":3,"mixed":1}\n',
      "b.ndjson": '{"n":"late","none":true,"mixed":"x","list":[1]}\n',
    });
    const env = { ENGINE_SERVER_URL: "http://127.0.0.1:1" };
    const typesOf = async (args: readonly string[]) => {
      const { stdout } = await runHere([...PUSH, "--dry-run", "--json", ...args, folder], { env });
      const { columns } = JSON.parse(stdout) as { columns: { name: string; type: string }[] };
      return columns.slice(4).map(({ name, type }) => `${name} ${type}`);
    };
    const typed = ["n long", "r real", "none bool", "when timestamp", "mixed long", "list dynamic"];
    expect(await typesOf([])).toEqual(typed);
    expect(await typesOf(["--no-infer-types"])).toEqual(typed.map((column) => column.replace(/ .+/, " string")));
  });

  test("says what cannot be read", async () => {
    const { env } = await started();
    const { code, stderr } = await runHere([...PUSH, "--dry-run"], { env, input: '{"a":1}\n{"a":\n' });
    expect([code, stderr]).toEqual([1, "error: line 2 of the input: the line is no JSON object\n"]);
  });
});
