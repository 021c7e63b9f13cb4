import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runChild, runHere, startServer } from "../../src/cli/cli.test-kit.ts";
import { CalledServices } from "../api/services.test-kit.ts";

/** `recall`, `remember`, `entity` and `distill` against a server that asks for tokens. */
let services: CalledServices<"ann" | "reader" | "scoped">;
let folder = "";
let env: Record<string, string>;

beforeAll(async () => {
  services = await CalledServices.start([
    ["ann", "write"],
    ["reader", "read"],
  ]);
  folder = mkdtempSync(join(tmpdir(), "engine-memory-"));
  env = { ENGINE_HOME: folder, ENGINE_SERVER_URL: services.url, ENGINE_TOKEN: services.tokens.get("ann") ?? "" };
});
afterAll(async () => {
  await services.close();
  rmSync(folder, { recursive: true });
});

const run = (argv: readonly string[], input = "") => runHere(argv, { env, input });

async function jsonOf(argv: readonly string[], input = ""): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await run([...argv, "--json"], input);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("remember and recall", () => {
  test("work as a process of their own with the saved server", async () => {
    const home = { ENGINE_HOME: folder };
    const token = services.tokens.get("ann") ?? "";
    expect((await runChild(["connect", services.url, "--token", token], { env: home })).code).toBe(0);
    const saved = await runChild(["remember", "The billing queue is called mauve"], { env: home });
    expect([saved.code, saved.stderr]).toEqual([0, ""]);
    expect(saved.stdout).toMatch(/^memory [0-9a-f-]{36} created\n$/);
    const found = await runChild(["recall", "what is the billing queue called?"], { env: home });
    expect([found.code, found.stderr]).toEqual([0, ""]);
    expect(found.stdout).toMatch(
      /^fact {2}default {2}[0-9a-f-]{36} {2}of \S+\n {2}The billing queue is called mauve\n/,
    );
  });

  test("confirm what is there, and update by a topic key", async () => {
    const argv = ["remember", "The gateway listens on 8080", "--type", "decision", "--realm", "project:web"];
    const first = await jsonOf([...argv, "--importance", "0.9"]);
    expect(first).toMatchObject({ outcome: "created" });
    expect(await jsonOf(argv)).toEqual({ id: first["id"], outcome: "confirmed" });
    const topic = ["--topic-key", "color", "--realm", "project:web"];
    const keyed = await jsonOf(["remember", "Buttons are green", ...topic]);
    expect(await jsonOf(["remember", "Buttons are blue", ...topic])).toEqual({ id: keyed["id"], outcome: "updated" });
    const { memories } = await jsonOf(["recall", "gateway buttons", "--realm", "project:web"]);
    expect(memories).toHaveLength(2);
    expect(memories).toContainEqual(
      expect.objectContaining({ id: first["id"], memory_type: "decision", importance: 0.9, realm: "project:web" }),
    );
    const { memories: one } = await jsonOf(["recall", "gateway buttons", "--realm", "project:web", "--limit", "1"]);
    expect(one).toHaveLength(1);
    const { memories: elsewhere } = await jsonOf(["recall", "gateway buttons", "--realm", "project:other"]);
    expect(elsewhere).toEqual([]);
    expect((await run(["recall", "gateway", "--realm", "project:other"])).stdout).toBe(
      "nothing that is remembered fits\n",
    );
  });

  test("keep the databases apart", async () => {
    const token = services.tokens.get("ann");
    const push = await fetch(`${services.url}/v1/ingest`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${token}`,
        "X-Database": "team",
        "X-Table": "t",
        "X-Auto-Create": "true",
        "Content-Type": "application/x-ndjson",
      },
      body: '{"a":1}\n',
    });
    expect(push.status).toBe(200);
    await jsonOf(["remember", "Pelicans are the team's mascot", "--db", "team"]);
    expect((await jsonOf(["recall", "mascot", "--db", "team"]))["memories"]).toHaveLength(1);
    expect((await jsonOf(["recall", "mascot"]))["memories"]).toEqual([]);
  });

  test("take hostile text as it is, and show it without its control characters", async () => {
    const hostile = "Beware '\"; DROP TABLE x; \u001b[31mred\u202e\u0007\n$(reboot) `id` {{x}} \\u0000 zebracorn";
    const { id } = await jsonOf(["remember", hostile, "--realm", "hostile"]);
    const { stdout } = await run(["recall", "zebracorn", "--realm", "hostile"]);
    // oxlint-disable-next-line no-control-regex -- control characters are what it is about
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/);
    expect(stdout).toContain(String(id));
    expect(stdout).toContain("\n  $(reboot) `id` {{x}} \\u0000 zebracorn\n");
    const { memories } = await jsonOf(["recall", "zebracorn", "--realm", "hostile"]);
    expect(memories).toMatchObject([{ content: hostile }]);
    expect((await run(["recall", "--realm", "hostile", "--", "--json -x 'a\" OR (NEAR/3 *"])).code).toBe(0);
  });
});

describe("entity", () => {
  test("is made once for a realm, a kind and a name, with properties and links", async () => {
    const { id: node } = await jsonOf(["remember", "Ann decided to use tables"]);
    const argv = ["entity", "Ann Lee", "--kind", "person", "--prop", "team=web=1", "--prop", "empty="];
    const links = ["--link", String(node), "--link", `${String(node)}||decided`];
    const first = await jsonOf([...argv, ...links]);
    expect(first).toMatchObject({ outcome: "created" });
    expect(first["edges"]).toMatchObject([{ outcome: "created" }, { outcome: "created" }]);
    const again = await run([...argv, ...links]);
    expect([again.code, again.stdout]).toEqual([0, `entity ${String(first["id"])} confirmed, with 2 links\n`]);
    const { entities } = await jsonOf(["recall", "Ann Lee"]);
    expect(entities).toMatchObject([{ id: first["id"], name: "Ann Lee", props: { team: "web=1", empty: "" } }]);
  });

  test.for([
    [["entity", "x"], "--kind"],
    [["entity", "x", "--kind", "k", "--prop", "novalue"], '--prop is key=value, not "novalue"'],
    [["entity", "x", "--kind", "k", "--prop", "=v"], "--prop is key=value"],
    [["entity", "x", "--kind", "k", "--prop", "a=1", "--prop", "a=2"], '--prop "a" is given twice'],
    [["entity", "x", "--kind", "k", "--link", "|memory"], "--link is node_id[|namespace[|rel]]"],
    [["entity", "x", "--kind", "k", "--link", "a|b|c|d"], "--link is node_id[|namespace[|rel]]"],
    [["remember", "x", "--type", "rumour"], "--type"],
    [["remember", "x", "--importance", "1.5"], "--importance is a number from 0 to 1"],
    [["remember", "x", "--importance", "NaN"], "--importance is a number from 0 to 1"],
    [["recall", "x", "--limit", "0"], "--limit is a number from 1 to 100"],
    [["recall", "x", "--limit", "ten"], "--limit is a number from 1 to 100"],
    [["recall", "x", "--db", "no such/name"], "database name"],
    [["recall"], "text"],
    [["recall", "two", "words"], "too many arguments"],
    [["distill"], "the transcript is empty"],
    [["distill", "/nowhere/transcript.txt"], 'cannot read "/nowhere/transcript.txt"'],
    [["distill", "/dev/zero"], "no regular file"],
  ] as const)("wrong usage ends with 2: %j", async ([argv, said]) => {
    const { code, stdout, stderr } = await run(argv);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(said);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  });

  test("a property named __proto__ is refused, and a link with nothing saves nothing", async () => {
    const proto = await run(["entity", "evil", "--kind", "k", "--prop", "__proto__=1"]);
    expect([proto.code, proto.stdout]).toEqual([1, ""]);
    expect(proto.stderr).toContain("props.__proto__: the key is not accepted");
    const lost = await run(["entity", "lonely", "--kind", "k", "--link", "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11"]);
    expect([lost.code, lost.stdout]).toEqual([1, ""]);
    expect(lost.stderr).toMatch(/^error: .*01977f3e/);
    expect((await jsonOf(["recall", "lonely"]))["entities"]).toEqual([]);
  });
});

describe("distill", () => {
  const TRANSCRIPT =
    "User: remember that the canary runs at noon\nAssistant: remember that pigs fly\nUser: we decided to ship";

  test("keeps a transcript of standard input or of a file, once", async () => {
    const { code, stdout, stderr } = await run(["distill", "--session", "s1", "--realm", "project:d"], TRANSCRIPT);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toBe(
      "3 turns kept, 2 statements saved\n  fact (created): the canary runs at noon\n  decision (created): we decided to ship\n",
    );
    const file = join(folder, "transcript.txt");
    writeFileSync(file, TRANSCRIPT);
    const again = await jsonOf(["distill", file, "--session", "s1", "--realm", "project:d"]);
    expect(again).toMatchObject({ firehose_rows: 3, replayed: true });
    expect((await jsonOf(["recall", "pigs", "--realm", "project:d"]))["memories"]).toEqual([]);
  });

  test("says where each statement came from with ENGINE_DISTILL_VERBOSE", async () => {
    const verbose = { ...env, ENGINE_DISTILL_VERBOSE: "1" };
    const said = "User: hello\nAssistant: hi\nUser: remember that the canary \u001b[31m sings";
    const argv = ["distill", "--session", "s2", "--realm", "project:v"];
    const { code, stdout, stderr } = await runHere(argv, { env: verbose, input: said });
    expect([code, stdout.split("\n")[0]]).toEqual([0, "3 turns kept, 1 statement saved"]);
    expect(stderr).toMatch(/^fact [0-9a-f-]{36} created from turn 3 of session s2: the canary \\u001b\[31m sings\n$/);
    const json = await runHere([...argv, "--json"], { env: verbose, input: said });
    expect(JSON.parse(json.stdout)).toMatchObject({ saved: [{ turn: 3, outcome: "confirmed" }] });
    expect(json.stderr).toContain("confirmed from turn 3");
    expect((await runHere(argv, { env, input: said })).stderr).toBe("");
  });

  test("refuses what is too long before it asks the server", async () => {
    const long = "x".repeat(1_048_577);
    const file = join(folder, "long.txt");
    writeFileSync(file, long);
    for (const { code, stderr } of [await run(["distill"], long), await run(["distill", file])]) {
      expect(code).toBe(2);
      expect(stderr).toMatch(/^error: .* too? ?long|longer than 1 MiB/);
    }
  });
});

describe("what a server refuses", () => {
  test("a token that only reads recalls, and is told that it may not write", async () => {
    const reader = { ...env, ENGINE_TOKEN: services.tokens.get("reader") ?? "" };
    expect((await runHere(["recall", "canary"], { env: reader })).code).toBe(0);
    const { code, stdout, stderr } = await runHere(["remember", "x y"], { env: reader });
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("save_memory needs the role write; the token has read");
  });

  test("a token that it does not know", async () => {
    const { code, stderr } = await runHere(["recall", "x"], { env: { ...env, ENGINE_TOKEN: "wrong" } });
    expect(code).toBe(4);
    expect(stderr).toMatch(/^error: the server refuses this token \(.*\); set ENGINE_TOKEN/);
  });

  test("a database that is not there, and text that is too long", async () => {
    const missing = await run(["recall", "x", "--db", "nowhere"]);
    expect(missing.code).toBe(1);
    expect(missing.stderr).toMatch(/^error: .*nowhere/);
    const long = await run(["remember", "x ".repeat(20_000)]);
    expect(long.code).toBe(1);
    expect(long.stderr).toMatch(/^error: content: /);
    expect((await run(["remember", " "])).code).toBe(1);
  });

  test("nobody answers", async () => {
    const { code, stderr } = await runHere(["recall", "x"], {
      env: { ...env, ENGINE_SERVER_URL: "http://127.0.0.1:1" },
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: no engine answers at http:\/\/127\.0\.0\.1:1: start one with/);
  });

  test.for([
    ["a page", "<html>\u001b[2J", "is no engine"],
    ["no result", "{}", "is no MCP server of an engine"],
    [
      "an error of the protocol",
      '{"error":{"code":-32602,"message":"no such\\u001b[31m tool"}}',
      "no such\\u001b[31m tool",
    ],
    ["a result without content", '{"result":{}}', "answered without a result"],
    [
      "an error that is no JSON",
      '{"result":{"isError":true,"content":[{"type":"text","text":"oh\\u001b"}]}}',
      "oh\\u001b",
    ],
    ["an error without text", '{"result":{"isError":true}}', "the tool failed"],
    [
      "a code that objects have",
      '{"result":{"isError":true,"content":[{"text":"{\\"error\\":{\\"code\\":\\"toString\\"}}"}]}}',
      "toString",
    ],
  ] as const)("a server that answers with %s", async ([, body, said]) => {
    const server = await startServer((_request, _body, response) => void response.writeHead(200).end(body));
    try {
      const { code, stdout, stderr } = await runHere(["recall", "x"], {
        env: { ...env, ENGINE_SERVER_URL: server.url },
      });
      expect([code, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(said);
      // oxlint-disable-next-line no-control-regex -- control characters are what it is about
      expect(stderr).not.toMatch(/\u001b/);
    } finally {
      await server.close();
    }
  });
});
