import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { drawnRandom } from "../../src/core/drawn-seed.test-kit.ts";
import { EventClient, startLiveWorld, type LiveServer, type LiveWorld, type SeenEvent } from "./live.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
let id: string;
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  id = await world.newSandbox();
});
afterEach(() => {
  world.nodes.cuts = [];
  world.nodes.isAway = false;
  world.machine.isPaused = false;
});
afterAll(() => world.close());

type Body = Record<string, unknown> | string;
const send = (body: Body, { by = "t", sandbox = id } = {}) =>
  fetch(`${server.url}/api/v1/sandboxes/${sandbox}/exec/stream`, {
    method: "POST",
    headers: { Authorization: `Bearer ${by}`, "Content-Type": "application/json" },
    body: JSON.stringify(typeof body === "string" ? { command: body } : body),
  });
const open = (body: Body, by = "t") =>
  EventClient.open(`${server.url}/api/v1/sandboxes/${id}/exec/stream`, {
    method: "POST",
    by,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(typeof body === "string" ? { command: body } : body),
  });
const run = async (body: Body, by?: string) => (await open(body, by)).all();
const resume = (execId: string, last: string | undefined, at = server) =>
  EventClient.open(`${at.url}/api/v1/sandboxes/${id}/exec/${execId}/stream`, {
    headers: last === undefined ? {} : { "Last-Event-ID": last },
  });
const refusal = async (response: Promise<Response>) => {
  const { status, ...rest } = await response.then(async (got) => ({ status: got.status, text: await got.text() }));
  return `${status} ${(JSON.parse(rest.text) as { error: { code: string } }).error.code}`;
};

function bytesOf(seen: readonly SeenEvent[], stream: "stdout" | "stderr"): Buffer {
  const mine = seen.filter(({ event }) => event.event_type === stream);
  return Buffer.concat(
    mine.map(({ event: { data } }) =>
      data["encoding"] === "base64" ? Buffer.from(String(data["data"]), "base64") : Buffer.from(String(data["text"])),
    ),
  );
}
const textOf = (seen: readonly SeenEvent[], stream: "stdout" | "stderr" = "stdout") => bytesOf(seen, stream).toString();
const endOf = (seen: readonly SeenEvent[]) => seen.at(-1)?.event;
const execIdOf = (seen: readonly SeenEvent[]) => String(seen[0]?.event.data["exec_id"]);
const isOutput = ({ event }: SeenEvent) => event.event_type === "stdout";

describe("a command in a sandbox", () => {
  it("tells its id, what it writes, and how it has ended", async () => {
    const seen = await run("echo out; echo err >&2; exit 3");
    expect(seen[0]).toMatchObject({ id: undefined, event: { event_type: "connected", sandbox_id: id } });
    expect(execIdOf(seen)).toMatch(/^[0-9a-f-]{36}$/);
    expect([textOf(seen), textOf(seen, "stderr")]).toEqual(["out\n", "err\n"]);
    expect(seen.at(-1)?.id).toBe("4-4-end");
    expect(endOf(seen)).toMatchObject({
      event_type: "exit",
      data: { exit_code: 3, signal: null, timed_out: false },
    });
  });

  it("begins in the working directory of the sandbox, or where it is told", async () => {
    const own = await world.newSandbox({ workingDirectory: "/usr/lib" });
    const where = async (sandbox: string, body: Record<string, unknown> = {}) => {
      const response = await send({ command: "pwd", ...body }, { sandbox });
      return /"text":"([^"]*)\\n"/.exec(await response.text())?.[1];
    };
    expect(await where(own)).toBe("/usr/lib");
    expect(await where(own, { cwd: "/usr" })).toBe("/usr");
    const byDefault = await where(id);
    expect(byDefault).toMatch(/^\//);
    expect(byDefault).not.toBe("/usr/lib");
  });

  it("ends with its true code or signal, never an invented one", async () => {
    const ends = [];
    for (const command of ["true", "exit 255", "kill -TERM $$", "exit 137"]) ends.push(endOf(await run(command))?.data);
    expect(ends).toEqual([
      { exit_code: 0, signal: null, timed_out: false },
      { exit_code: 255, signal: null, timed_out: false },
      { exit_code: null, signal: "SIGTERM", timed_out: false },
      { exit_code: 137, signal: null, timed_out: false },
    ]);
    expect(endOf(await run({ command: ["sleep", "60"], timeout_secs: 0.2 }))?.data).toEqual({
      exit_code: null,
      signal: "SIGKILL",
      timed_out: true,
    });
  });

  it("has its own folder, variables and input; text comes as text, other bytes as base64", async () => {
    const command = ["sh", "-c", 'pwd; echo "$GREETING"; cat'];
    const seen = await run({ command, cwd: "/usr", env: { GREETING: "grüß" }, stdin: "€😀" });
    expect(textOf(seen)).toBe("/usr\ngrüß\n€😀");
    expect(seen.every(({ event }) => event.data["encoding"] === undefined)).toBe(true);
    const bytes = Buffer.from([0, 255, 128, 10]);
    const raw = await run({ command: ["cat"], stdin: bytes.toString("base64"), stdin_encoding: "base64" });
    expect(bytesOf(raw, "stdout")).toEqual(bytes);
    expect(raw.some(({ event }) => event.data["encoding"] === "base64")).toBe(true);
    expect(textOf(await run({ command: ["cat"] }))).toBe("");
  });

  it("also writes to the log where that is asked for", async () => {
    world.lines.splice(0);
    await run({ command: "echo one; printf two; echo three >&2", log: true });
    await expect.poll(() => world.lines.toSorted()).toEqual(["stderr three", "stdout one", "stdout two"]);
  });

  it("is audited, without what may be secret", async () => {
    await run({ command: ["true", "it"], env: { TOKEN: "hidden" }, stdin: "hidden", cwd: "/usr" });
    const [entry] = await world.audit.list({ limit: 1 });
    expect(entry).toMatchObject({ actor: "t", action: "sandbox.exec", target: id, outcome: "ok" });
    expect(entry?.details).toMatchObject({ command: '["true","it"]', user: "agent", cwd: "/usr", env: ["TOKEN"] });
    expect(JSON.stringify(entry)).not.toContain("hidden");
  });

  it("waits for a sandbox that is being made", async () => {
    const sandbox = await world.newSandbox({ state: "creating" });
    const ran = send({ command: ["echo", "there"] }, { sandbox });
    await delay(100);
    await world.catalog.records.write({
      sql: "UPDATE sandboxes SET state = 'running' WHERE id = ?",
      values: [sandbox],
    });
    const answer = await ran;
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"text":"there\\n"');
  });

  it("is refused where it cannot run", async () => {
    expect(await refusal(send({ command: "id", user: "root" }))).toBe("403 forbidden");
    expect(endOf(await run({ command: "true", user: "root" }, "admin"))?.data["exit_code"]).toBe(0);
    expect(await refusal(send("true", { by: "reader" }))).toBe("403 forbidden");
    expect(await refusal(send("true", { by: "other" }))).toBe("404 sandbox_not_found");
    for (const state of ["pending", "creating", "pausing", "paused", "stopping", "stopped", "failed"]) {
      const sandbox = await world.newSandbox({ state });
      expect(await refusal(send("true", { sandbox }))).toBe("409 sandbox_invalid_state");
    }
    world.machine.isPaused = true;
    expect(await refusal(send("true"))).toBe("409 sandbox_invalid_state");
    world.machine.isPaused = false;
    expect(await refusal(send({ command: ["/no/such/program"] }))).toBe("400 config_validation_error");
    const bad = [
      {},
      { command: [] },
      { command: "" },
      { command: "a\0b" },
      { command: "a", cwd: "b" },
      { command: "a", x: 1 },
    ];
    for (const body of [
      ...bad,
      { command: "a", stdin: "!", stdin_encoding: "base64" },
      { command: "a", env: { "a=": "" } },
    ]) {
      expect(await refusal(send(body))).toBe("400 bad_request_body");
    }
  });

  it("can be ended", async () => {
    const client = await open("trap 'echo caught; exit 9' TERM; echo ready; for n in $(seq 1200); do sleep 0.05; done");
    const begun = await client.until(isOutput);
    const url = `${server.url}/api/v1/sandboxes/${id}/exec/${execIdOf(begun)}`;
    const end = (rest: string) => fetch(url + rest, { method: "DELETE", headers: { Authorization: "Bearer t" } });
    expect((await end("?signal=SIGTERM")).status).toBe(204);
    const seen = await client.all();
    expect([textOf(seen), endOf(seen)?.data["exit_code"]]).toEqual(["caught\n", 9]);
    expect((await end("?signal=SIGUSR1")).status).toBe(400);
    const nobody = url.replace(/[^/]+$/, "0198a000-0000-7000-8000-000000000001");
    const unknown = fetch(nobody, { method: "DELETE", headers: { Authorization: "Bearer t" } });
    expect(await refusal(unknown)).toBe("404 not_found");
  });
});

describe("a command whose client leaves", () => {
  it("goes on, and is followed by another server from where it was", async () => {
    const client = await open("echo one; sleep 0.3; echo two; exit 4");
    const first = await client.until(isOutput);
    client.leave();
    const other = await world.startServer();
    const rest = await (await resume(execIdOf(first), first.at(-1)?.id, other)).all();
    expect([textOf(first), textOf(rest), endOf(rest)?.data["exit_code"]]).toEqual(["one\n", "two\n", 4]);
    const again = await (await resume(execIdOf(first), undefined)).all();
    expect([textOf(again), endOf(again)?.data["exit_code"]]).toEqual(["one\ntwo\n", 4]);
    const over = await fetch(`${server.url}/api/v1/sandboxes/${id}/exec/${execIdOf(first)}/stream`, {
      headers: { Authorization: "Bearer t", "Last-Event-ID": rest.at(-1)?.id ?? "" },
    });
    expect(over.status).toBe(204);
  });

  it("is ended with it where that is asked for, and holds no reader", async () => {
    const client = await open({ command: "echo ready; sleep 60", cancel_on_disconnect: true });
    const exec = world.machine.execs.get(execIdOf(await client.until(isOutput)));
    client.leave();
    await expect.poll(() => exec?.hasEnded).toBe(true);
    await expect.poll(() => exec?.readers).toBe(0);
    const kept = await open("echo ready; sleep 60");
    const other = world.machine.execs.get(execIdOf(await kept.until(isOutput)));
    kept.leave();
    await expect.poll(() => other?.readers).toBe(0);
    expect(other?.hasEnded).toBe(false);
    await other?.kill("SIGKILL");
  });

  it("is asked to come again where the server stops", async () => {
    const second = await world.startServer();
    const client = await EventClient.open(`${second.url}/api/v1/sandboxes/${id}/exec/stream`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ command: "echo one; sleep 0.4; echo two", cancel_on_disconnect: true }),
    });
    const begun = await client.until(isOutput);
    second.events.close();
    expect(endOf(await client.all())).toMatchObject({ event_type: "reconnect", data: { after_ms: 1_000 } });
    const rest = await (await resume(execIdOf(begun), begun.at(-1)?.id)).all();
    expect([textOf(rest), endOf(rest)?.data["exit_code"]]).toEqual(["two\n", 0]);
  });
});

describe("the output of a command", () => {
  const WORDS = "a😀é€\\377";

  it("comes whole and once over connections to the node that break at any byte", async () => {
    const random = drawnRandom();
    world.nodes.cuts = Array.from({ length: 50 }, () => 1 + Math.floor(random.next() * 3_000));
    const command = `i=0; while [ $i -lt 1500 ]; do printf '%s ${WORDS}\\n' $i; printf 'é%s' $i >&2; i=$((i+1)); done; exit 5`;
    const seen = await run(command);
    const whole = await run(command);
    expect(world.nodes.cuts.length).toBeLessThan(45);
    for (const stream of ["stdout", "stderr"] as const) {
      expect(bytesOf(seen, stream).equals(bytesOf(whole, stream))).toBe(true);
    }
    expect(endOf(seen)?.data).toEqual({ exit_code: 5, signal: null, timed_out: false });
  });

  it("comes whole and once to a client that is cut off at any byte", async () => {
    const random = drawnRandom();
    const command = "seq -f '%.0f😀' 0 59999; exit 6";
    const seen: SeenEvent[] = [];
    const first = await open(command);
    seen.push(...(await first.until(isOutput)));
    first.leave();
    const execId = execIdOf(seen);
    const exec = world.machine.execs.get(execId);
    await expect.poll(() => exec?.hasEnded).toBe(true);
    let disconnects = 0;
    for (; disconnects < 50; disconnects++) {
      const last = seen.findLast((one) => one.id !== undefined)?.id;
      if (last?.endsWith("end") === true) break;
      const client = await resume(execId, last);
      seen.push(...(await client.take(200 + Math.floor(random.next() * 90_000))));
    }
    expect(textOf(seen)).toBe(Array.from({ length: 60_000 }, (_, i) => `${i}😀\n`).join(""));
    expect(seen.filter(({ event }) => event.event_type === "exit")).toHaveLength(1);
    expect(disconnects).toBeGreaterThan(10);
    await expect.poll(() => exec?.readers).toBe(0);
  });

  it("ends with an error when the sandbox is no more, and is begun once the node is there", async () => {
    const gone = await world.newSandbox();
    const client = await EventClient.open(`${server.url}/api/v1/sandboxes/${gone}/exec/stream`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ command: "echo ready; sleep 60" }),
    });
    const begun = await client.until(isOutput);
    await world.catalog.records.transact([
      { sql: "UPDATE sandboxes SET state = 'failed' WHERE id = ?", values: [gone] },
    ]);
    world.nodes.calls = [];
    await world.machine.execs.get(execIdOf(begun))?.kill("SIGKILL");
    expect(endOf(await client.all())?.event_type).toBe("exit");
    world.nodes.isAway = true;
    const waiting = run("echo late");
    await new Promise((resolve) => setTimeout(resolve, 300));
    world.nodes.isAway = false;
    expect(textOf(await waiting)).toBe("late\n");
    world.nodes.cuts = [10];
    const lost = await open("echo ready; sleep 60");
    world.nodes.isAway = true;
    await world.catalog.records.transact([
      { sql: "UPDATE sandboxes SET state = 'stopped' WHERE id = ?", values: [id] },
    ]);
    expect(endOf(await lost.all())).toMatchObject({ event_type: "error", data: { code: "gone" } });
    // Whoever comes again is told so at once, though the node is not there to say it.
    const nobody = "0198a000-0000-7000-8000-000000000001";
    for (const [method, path] of [
      ["GET", `${nobody}/stream`],
      ["DELETE", nobody],
    ] as const) {
      const url = `${server.url}/api/v1/sandboxes/${id}/exec/${path}`;
      const answer = fetch(url, { method, headers: { Authorization: "Bearer t" } });
      expect(await refusal(answer)).toBe("409 sandbox_invalid_state");
    }
    await world.catalog.records.transact([
      { sql: "UPDATE sandboxes SET state = 'running' WHERE id = ?", values: [id] },
    ]);
  });
});
