import { createHash } from "node:crypto";
import { Writable } from "node:stream";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { startLiveWorld, type LiveServer, type LiveWorld } from "../sandbox-routes/live.test-kit.ts";
import { runHere, startServer, type Outcome, type RunOptions } from "../../src/cli/cli.test-kit.ts";
import { commandExitCode } from "../../src/sandbox/commands/sandbox-exit.ts";
import { CutWire, SeenOutput } from "../../src/cli/sandbox.test-kit.ts";

let world: LiveWorld;
let server: LiveServer;
let id: string;
let wire: CutWire | undefined;
beforeAll(async () => {
  world = await startLiveWorld();
  server = await world.startServer();
  id = await world.newSandbox();
});
afterEach(() => wire?.close());
afterAll(() => world.close());

type Options = RunOptions & { flags?: readonly string[]; url?: string; by?: string };

function exec(command: readonly string[], { flags = [], url = server.url, by = "t", ...options }: Options = {}) {
  const argv = ["sandbox", "exec", "--server", url, ...flags, id, "--", ...command];
  return runHere(argv, { ...options, env: { ENGINE_TOKEN: by } });
}
const sh = (script: string, options?: Options): Promise<Outcome> => exec(["sh", "-c", script], options);

async function openWire(): Promise<{ wire: CutWire; url: string }> {
  wire = new CutWire(server.url);
  return { wire, url: await wire.open() };
}

describe("engine sandbox exec", () => {
  test("writes what the command writes, each stream on its own, and ends as it does", async () => {
    expect(await sh("echo grüß; echo oops >&2; exit 3")).toEqual({ code: 3, stdout: "grüß\n", stderr: "oops\n" });
    expect(await exec(["true"])).toEqual({ code: 0, stdout: "", stderr: "" });
    const stdout = new SeenOutput();
    await sh(String.raw`printf '\377\000a\303\nb'; head -c 300000 /dev/zero | tr '\0' '\376'`, { stdout });
    const expected = Buffer.concat([Buffer.from([255, 0, 97, 0xc3, 10, 98]), Buffer.alloc(300_000, 0xfe)]);
    expect(stdout.bytes().equals(expected)).toBe(true);
  });

  test("hands over options, folder, environment and log", async () => {
    const flags = ["-C", "/usr", "--env", "A=1=2", "--env", "B=", "--log"];
    const { stdout } = await sh(`pwd; echo "$A,$B,$0"`, { flags });
    expect(stdout).toBe("/usr\n1=2,,sh\n");
    await expect.poll(() => world.lines).toEqual(["stdout /usr", "stdout 1=2,,sh"]);
    // What follows the command is the command's, also without the two dashes.
    const own = ["sandbox", "exec", "--server", server.url, id, "echo", "--json", "-i", "--timeout", "x"];
    expect((await runHere(own, { env: { ENGINE_TOKEN: "t" } })).stdout).toBe("--json -i --timeout x\n");
  });

  test("reads standard input only when told to", async () => {
    const input = Buffer.alloc(2 * 2 ** 20, Buffer.from([0, 1, 254, 255, 10]));
    const hash = createHash("sha256").update(input).digest("hex");
    expect((await exec(["sha256sum"], { flags: ["-i"], input })).stdout).toBe(`${hash}  -\n`);
    expect((await exec(["wc", "-c"], { input: "unread" })).stdout.trim()).toBe("0");
    expect((await exec(["wc", "-c"], { flags: ["-i"] })).stdout.trim()).toBe("0");
    const much = await exec(["cat"], { flags: ["-i"], input: Buffer.alloc(11 * 2 ** 20 + 1) });
    expect([much.code, much.stderr]).toEqual([1, "error: more than 11 MiB of input: copy it into the sandbox first\n"]);
    const most = await exec(["wc", "-c"], { flags: ["-i"], input: Buffer.alloc(11 * 2 ** 20) });
    expect(most.stdout.trim()).toBe(String(11 * 2 ** 20));
  });

  test("a signal is 128 and its number, time that is over 124", async () => {
    expect((await sh("kill -9 $$")).code).toBe(137);
    expect((await sh("kill -SEGV $$")).code).toBe(139);
    expect((await exec(["sleep", "30"], { flags: ["--timeout", "0.3"] })).code).toBe(124);
    const codes = ["SIGHUP", "SIGTERM", "SIGSYS", "SIGNUM40"].map((signal) => commandExitCode({ signal }));
    expect(codes).toEqual([129, 143, 159, 1]);
  });

  test("with --json each event is a line, without those of the connection", async () => {
    const { code, stdout } = await sh("echo out; exit 5", { flags: ["--json"] });
    const events = stdout.trim().split("\n");
    expect(code).toBe(5);
    expect(events.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { event_type: "connected", sandbox_id: id, data: { exec_id: expect.any(String) as string } },
      { event_type: "stdout", data: { text: "out\n" } },
      { event_type: "exit", data: { exit_code: 5, signal: null, timed_out: false } },
    ]);
  });

  test("says why a command was not run", async () => {
    const stderrOf = async (...args: Parameters<typeof exec>) => {
      const { code, stderr } = await exec(...args);
      return [code, stderr];
    };
    expect(await stderrOf(["true"], { by: "other" })).toEqual([1, `error: there is no sandbox ${id}\n`]);
    expect(await stderrOf(["no-such-program"])).toEqual([1, expect.stringMatching(/^error: .*no-such-program/)]);
    expect(await stderrOf(["true"], { by: "nobody" })).toEqual([4, expect.stringContaining("refuses this token")]);
    expect(await stderrOf(["true"], { flags: ["--user", "root"] })).toEqual([4, expect.stringContaining("admins")]);
    expect(await stderrOf(["true"], { flags: ["--env", "x"] })).toEqual([
      2,
      'error: --env takes name=value, not "x"\n',
    ]);
    expect(await stderrOf(["true"], { flags: ["--timeout", "soon"] })).toEqual([
      2,
      'error: --timeout takes a number, not "soon"\n',
    ]);
    expect((await exec([])).code).toBe(2);
  });
});

describe("a command whose client is cut off", () => {
  test("is followed on: nothing of its output is missing, and nothing comes twice", async () => {
    const all = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join("");
    const { wire: cut, url } = await openWire();
    cut.cuts = [900, 30_000, 60_001];
    expect(await sh("echo once >&2; seq 20000; exit 4", { url })).toEqual({ code: 4, stdout: all, stderr: "once\n" });
    expect(cut.connections).toBe(4);
  });

  test("is followed on at another server, when its own is about to stop", async () => {
    const [first, second] = [await world.startServer(), await world.startServer()];
    const { wire: cut, url } = await openWire();
    cut.leadTo(first.url);
    const stdout = new SeenOutput();
    const running = sh("echo begun; sleep 2; echo ended", { url, stdout });
    await expect.poll(() => stdout.text()).toBe("begun\n");
    cut.leadTo(second.url);
    first.events.close();
    await first.close();
    expect((await running).code).toBe(0);
    expect(stdout.text()).toBe("begun\nended\n");
  });

  test("is not begun again when it is not known whether it was begun", async () => {
    const { wire: cut, url } = await openWire();
    cut.cuts = [10];
    const had = world.machine.execs.size;
    const { code, stderr } = await exec(["true"], { url });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^error: the connection to .* broke: /)]);
    expect(world.machine.execs.size).toBeLessThanOrEqual(had + 1);
    expect(cut.connections).toBe(1);
  });
});

describe("what the server says in between", () => {
  const said = (type: string, data: object) => `data: ${JSON.stringify({ event_type: type, data })}\n\n`;
  const CONNECTED = said("connected", { exec_id: "e" });
  const END = said("exit", { exit_code: 0, signal: null, timed_out: false });

  async function against(...answers: readonly (string | number)[]): Promise<Outcome & { asked: string[] }> {
    const asked: string[] = [];
    const answering = await startServer((request, _, response) => {
      const answer = answers[asked.push(`${request.method} ${request.url}`) - 1];
      if (typeof answer === "number") response.writeHead(answer).end('{"error":{"message":"not now"}}');
      else response.writeHead(200, { "content-type": "text/event-stream" }).end(answer);
    });
    const outcome = await exec(["x"], { url: answering.url });
    await answering.close();
    return { ...outcome, asked };
  }

  test("output that is lost is told, and the command is followed on", async () => {
    const lost = said("error", { code: "output_lost", message: "7 bytes of stdout are no longer there" });
    const { code, stderr } = await against(CONNECTED + said("keepalive", {}) + lost + END);
    expect([code, stderr]).toEqual([0, "warning: 7 bytes of stdout are no longer there\n"]);
  });

  test("a command that is lost is an error", async () => {
    const { code, stderr } = await against(
      CONNECTED + said("error", { code: "unavailable", message: "node n is away" }),
    );
    expect([code, stderr]).toEqual([1, "error: the command was lost sight of: node n is away\n"]);
  });

  test("a server that begins, or a node, may take a moment; one that refuses is believed", async () => {
    const passing = await against(CONNECTED, 503, CONNECTED + END);
    expect([passing.code, passing.asked.slice(1)]).toEqual([
      0,
      [`GET /api/v1/sandboxes/${id}/exec/e/stream`, `GET /api/v1/sandboxes/${id}/exec/e/stream`],
    ]);
    const gone = await against(CONNECTED, 404);
    expect([gone.code, gone.stderr]).toEqual([1, "error: not now\n"]);
    expect((await against(503)).asked).toHaveLength(1);
  });
});

describe("a command whose client leaves", () => {
  test("is interrupted as that is", async () => {
    const stdout = new SeenOutput();
    const running = sh("trap 'echo caught; exit 9' INT; echo begun; for n in $(seq 1200); do sleep 0.05; done", {
      stdout,
    });
    await expect.poll(() => stdout.text()).toBe("begun\n");
    const before = process.listenerCount("SIGINT");
    process.emit("SIGINT", "SIGINT");
    expect((await running).code).toBe(9);
    expect(stdout.text()).toBe("begun\ncaught\n");
    expect(process.listenerCount("SIGINT")).toBe(before - 1);
  });

  test("is ended when nobody reads its output", async () => {
    let hadBytes = 0;
    const stdout = new Writable({
      write(chunk: Buffer, _encoding, done) {
        hadBytes += chunk.length;
        done(hadBytes > 1_000 ? Object.assign(new Error("broken pipe"), { code: "EPIPE" }) : undefined);
      },
    });
    expect((await sh("for n in $(seq 6000); do echo more and more; sleep 0.01; done", { stdout })).code).toBe(0);
    const newest = [...world.machine.execs.values()].at(-1);
    await vi.waitFor(() => expect(newest?.hasEnded).toBe(true), 60_000);
  });
});
