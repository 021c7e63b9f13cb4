import { spawn } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/** Users, tokens, sessions and credentials by the real program, against a real server. */
const PROGRAM = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));
const KEY = Buffer.alloc(32, 1).toString("base64");
const SERVER_ENV = {
  ENGINE_AUTH_BACKEND: "session",
  ENGINE_ADMIN_USER: "root",
  ENGINE_ADMIN_PASSWORD: "correct horse",
  ENGINE_SECRET_KEY: KEY,
};

let engine: Engine;
let serverHome: Awaited<ReturnType<typeof temporaryHome>>;
let clientHome: Awaited<ReturnType<typeof temporaryHome>>;
beforeAll(async () => {
  [serverHome, clientHome] = await Promise.all([temporaryHome(), temporaryHome()]);
  engine = await startEngine({ home: serverHome.home, env: SERVER_ENV });
  await signIn();
  await done(["ingest", "push", "--table", "events"], '{"body":"x"}\n', { NO_COLOR: "1" });
});
afterAll(async () => {
  await engine.stop();
  await Promise.all([serverHome.remove(), clientHome.remove()]);
});

type Outcome = { code: number | null; stdout: string; stderr: string };

function run(argv: readonly string[], input = "", env: Record<string, string> = {}): Promise<Outcome> {
  const all = { ...cleanEnv(), ENGINE_HOME: clientHome.home, ...env };
  const child = spawn(process.execPath, [PROGRAM, ...argv], { env: all });
  const outcome: Outcome = { code: null, stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (outcome.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (outcome.stderr += text));
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  return new Promise((resolve) => {
    child.on("close", (code) => resolve({ ...outcome, code }));
  });
}

async function done(argv: readonly string[], input = "", env: Record<string, string> = {}): Promise<string> {
  const { code, stdout, stderr } = await run(argv, input, env);
  expect([argv, code, stderr]).toEqual([argv, 0, ""]);
  return stdout;
}

async function jsonOf(argv: readonly string[], input = ""): Promise<unknown> {
  return JSON.parse(await done([...argv, "--json"], input)) as unknown;
}

const signIn = (username = "root", password = "correct horse") =>
  done(["login", "--server", engine.url, "--username", username, "--password-stdin"], `${password}\n`);
const saved = () => JSON.parse(readFileSync(join(clientHome.home, "client.json"), "utf8")) as Record<string, string>;

describe("engine login", () => {
  test("saves a session for this user alone, with which the other commands work", async () => {
    const file = join(clientHome.home, "client.json");
    expect(await signIn()).toBe(`signed in to ${engine.url} as root; the session is saved in ${file}\n`);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(Object.keys(saved()).toSorted()).toEqual(["expires_at", "refresh_token", "token", "url"]);
    expect(await done(["sql", "SELECT 1 AS one"])).toBe('{"one":1}\n');
  });

  test("refuses a wrong password, and repeats it nowhere", async () => {
    const argv = ["login", "--server", engine.url, "--username", "root", "--password-stdin"];
    const { code, stdout, stderr } = await run(argv, "canary-password");
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/^error: .*password is wrong/);
    expect(stderr).not.toContain("canary");
  });

  test.for([
    [["login"], "name the user with --username"],
    [["login", "--username", "root"], "--password-stdin"],
    [["user", "create", "x"], "--password-stdin"],
    [["user", "delete", "x"], "say --yes"],
  ] as const)("asks nothing where nobody can answer: %s", async ([argv, said]) => {
    const { code, stderr } = await run(argv);
    expect(code).toBe(2);
    expect(stderr).toContain("error: standard input is no terminal");
    expect(stderr).toContain(said);
  });

  test("renews a token that is about to end once, for commands that run at the same time", async () => {
    await signIn();
    const before = saved();
    const file = join(clientHome.home, "client.json");
    writeFileSync(file, JSON.stringify({ ...before, expires_at: new Date(Date.now() - 1_000).toISOString() }));
    const me = () => done(["sql", "SELECT 1 AS one"]);
    // A second use of the refresh token would end the session, and with it the others.
    expect(await Promise.all([me(), me(), me()])).toEqual(Array.from({ length: 3 }, () => '{"one":1}\n'));
    expect(saved()["token"]).not.toBe(before["token"]);
    expect(Date.parse(saved()["expires_at"] ?? "")).toBeGreaterThan(Date.now() + 3_000_000);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await me()).toBe('{"one":1}\n');
  });

  test("says so when the session has ended", async () => {
    await signIn();
    const file = join(clientHome.home, "client.json");
    const ended = { ...saved(), expires_at: "2020-01-01T00:00:00Z", refresh_token: "engine_rt_nothing" };
    writeFileSync(file, JSON.stringify(ended));
    const { code, stderr } = await run(["sql", "SELECT 1"]);
    expect([code, stderr]).toEqual([
      4,
      `error: your session at ${engine.url} has ended; sign in again with \`engine login\`\n`,
    ]);
  });

  test("ends with engine logout, at the server too", async () => {
    await signIn();
    const { token } = saved();
    expect(await done(["logout"])).toBe(`signed out of ${engine.url}\n`);
    expect(saved()).toEqual({ url: engine.url });
    const after = await run(["sql", "SELECT 1"], "", { ENGINE_TOKEN: token ?? "" });
    expect(after.code).toBe(4);
    expect(after.stderr).toContain("the server refuses this token");
    expect((await run(["logout"])).stderr).toBe("error: you are not signed in\n");
  });
});

describe("engine user", () => {
  test("makes, changes and deletes users", async () => {
    await signIn();
    const made = await done(["user", "create", "ann", "--password-stdin"], "battery staple\r\n");
    expect(made).toBe("user ann created with the role read\n");
    expect(await done(["user", "set-role", "ann", "write"])).toBe("user ann has the role write\n");
    expect(await jsonOf(["user", "list"])).toMatchObject([
      { username: "ann", role: "write" },
      { username: "root", role: "admin" },
    ]);
    expect(await done(["user", "list"])).toMatch(/^NAME +ROLE +SOURCE +CREATED\n.*\nann +write +local +20/);
    await done(["user", "passwd", "ann", "--password-stdin"], "another staple\n");
    await signIn("ann", "another staple");
    const refused = await run(["user", "list"]);
    expect(refused.code).toBe(4);
    expect(refused.stderr).toContain("this needs the role admin");
    await signIn();
    expect(await done(["user", "delete", "ann", "--yes"])).toBe("user ann deleted\n");
    const again = await run(["user", "delete", "ann", "--yes"]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringMatching(/^error: .*ann/)]);
  });

  test("says what is wrong with a password, a role or the last admin", async () => {
    await signIn();
    const short = await run(["user", "create", "bob", "--password-stdin"], "short");
    expect([short.code, short.stderr]).toEqual([1, expect.stringContaining("8")]);
    const none = await run(["user", "create", "bob", "--password-stdin"], "\n");
    expect([none.code, none.stderr]).toEqual([2, "error: standard input holds no password\n"]);
    expect((await run(["user", "create", "bob", "--role", "boss"])).code).toBe(2);
    expect((await run(["user", "set-role", "root", "boss"])).code).toBe(1);
    expect((await run(["user", "delete", "root", "--yes"])).stderr).toMatch(/^error: .*admin/);
  });
});

describe("engine token", () => {
  test("makes tokens, prints them once, and revokes them", async () => {
    await signIn();
    const argv = ["token", "create", "ci", "--role", "write", "--databases", "logs, traces"];
    const { code, stdout, stderr } = await run(argv);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^engine_pat_\w+\n$/)]);
    const id = /^token (\S+) made; it is shown this once\n$/.exec(stderr)?.[1] ?? "";
    const [listed] = (await jsonOf(["token", "list"])) as Record<string, unknown>[];
    expect(listed).toMatchObject({ id, name: "ci", owner: "root", role: "write", databases: ["logs", "traces"] });
    expect(await done(["token", "list"])).not.toContain(stdout.trim());
    const use = () => run(["token", "list"], "", { ENGINE_TOKEN: stdout.trim() });
    expect((await use()).code).toBe(0);
    expect(await done(["token", "revoke", id])).toBe(`token ${id} revoked\n`);
    expect((await use()).code).toBe(4);
    const past = await run(["token", "create", "x", "--expires", "2020-01-01T00:00:00Z"]);
    expect(past.stderr).toBe("error: expires_at is in the past\n");
  });
});

describe("engine credentials", () => {
  test("stores values from standard input and never shows them", async () => {
    await signIn();
    const value = JSON.stringify({ kind: "pat", token: "canary-token-0123456789-abcd", username: "ann" });
    const stored = await done(["credentials", "create", "git", "--metadata", '{"team":"data"}'], value);
    const id = /^credential (\S+) stored: ann ••••abcd\n$/.exec(stored)?.[1] ?? "";
    const shown = await done(["credentials", "show", id]);
    expect(shown).toContain("label          git\n");
    expect(shown).toContain('metadata       {"team":"data"}\n');
    const all = (await done(["credentials", "list"])) + JSON.stringify(await jsonOf(["credentials", "list"]));
    expect(all).toContain(id);
    expect(stored + shown + all).not.toContain("canary");
    const broken = await run(["credentials", "create", "git"], '{"token":"canary');
    expect([broken.code, broken.stderr]).toEqual([2, "error: standard input is not JSON\n"]);
    const wrong = await run(["credentials", "create", "git"], '{"kind":"pat","tokn":"canary"}');
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).not.toContain("canary");
    expect(await done(["credentials", "delete", id, "--yes"])).toBe(`credential ${id} deleted\n`);
  });

  test("moves to a new key beside a running server, and says what it cannot open", async () => {
    await signIn();
    await done(["credentials", "create", "one"], '{"kind":"pat","token":"a token"}');
    const catalog = join(serverHome.home, "catalog.db");
    const next = Buffer.alloc(32, 2).toString("base64");
    const rotate = (env: Record<string, string>) =>
      run(["credentials", "rotate", "--catalog-url", `sqlite://${catalog}`], "", env);
    expect(await rotate({})).toMatchObject({ code: 2, stderr: expect.stringContaining("ENGINE_SECRET_KEY") as string });
    const lost = await rotate({ ENGINE_SECRET_KEY: next });
    expect([lost.code, lost.stdout]).toEqual([1, "0 credentials were sealed anew\n"]);
    expect(lost.stderr).toMatch(/^error: these do not open with any key that is set, and stay as they are: \S+\n$/);
    const both = { ENGINE_SECRET_KEY: next, ENGINE_SECRET_KEYS_FORMER: KEY };
    expect(await rotate(both)).toEqual({ code: 0, stdout: "1 credential was sealed anew\n", stderr: "" });
    expect(await rotate(both)).toEqual({ code: 0, stdout: "0 credentials were sealed anew\n", stderr: "" });
    const audit = await fetch(`${engine.url}/v1/admin/audit?action=credential.rotate`, {
      headers: { Authorization: `Bearer ${saved()["token"] ?? ""}` },
    });
    const { entries } = (await audit.json()) as { entries: unknown[] };
    expect(entries).toMatchObject([{ actor: "engine" }, { actor: "engine" }, { outcome: "failed" }]);
  });
});
