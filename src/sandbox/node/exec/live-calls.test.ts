import { randomUUID } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { beforeAll, expect, it } from "vitest";
import { systemClock } from "../../../core/clock.ts";
import { silentLog } from "../../../core/log.ts";
import type { ExecEvent, NodeCall, NodeCallHandler, NodeReply } from "../../contract/link/calls.ts";
import { encodeShellFrame, shellFramesOf } from "../../contract/link/shell-frames.ts";
import { specOf, testRuntime } from "../../runtime/machines.test-kit.ts";
import { describeInCage } from "../../runtime/cage.test-kit.ts";
import type { Machine } from "../../runtime/runtime.ts";
import { liveCallHandler } from "./live-calls.ts";

type More = Pick<Partial<NodeCall>, "body" | "signal">;

describeInCage("calls about what runs in a machine", () => {
  let machine: Machine;
  let handler: NodeCallHandler;
  const lines: string[] = [];
  const test = testRuntime("live-calls");
  beforeAll(async () => {
    machine = await test.runtime.create(specOf());
    handler = liveCallHandler({
      machineOf: (id) => (id === "here" ? machine : undefined),
      onLine: (_, { stream, line }) => void lines.push(`${stream} ${line}`),
      trafficOf: () => ({ rxBytes: 3, txBytes: 4 }),
      clock: systemClock,
      log: silentLog,
    });
  });

  const call = (method: NodeCall["method"], params: unknown, more: More = {}): Promise<NodeReply> =>
    handler({ method, sandboxId: "here", params, signal: new AbortController().signal, ...more });
  const exec = (command: string, params: object = {}, more: More = {}) =>
    call("exec", { exec_id: randomUUID(), argv: ["sh", "-c", command], ...params }, more);
  const eventsOf = async ({ body }: NodeReply): Promise<ExecEvent[]> =>
    (await text(body ?? Readable.from([])))
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as ExecEvent]));

  it("a command writes, reads its input, and ends as it ends; its lines are logged", async () => {
    const reply = await exec(
      "cat; echo err >&2; exit 3",
      { stdin: true, log: true },
      { body: Readable.from([Buffer.from("grüß\n")]) },
    );
    const events = await eventsOf(reply);
    expect(events.filter(({ type }) => type === "stdout")).toEqual([{ type: "stdout", data: "grüß\n", at: 7 }]);
    expect(events.at(-1)).toEqual({ type: "exit", exit_code: 3, signal: null, timed_out: false });
    await expect.poll(() => lines.toSorted()).toEqual(["stderr err", "stdout grüß"]);
    expect((await eventsOf(await exec("kill -9 $$"))).at(-1)).toMatchObject({ exit_code: null, signal: "SIGKILL" });
  });

  it("one that was left goes on, and is taken up from any byte", async () => {
    const id = randomUUID();
    const leaving = new AbortController();
    const first = await exec(
      "printf 'a€b'; sleep 0.3; printf 'c'; exit 4",
      { exec_id: id },
      { signal: leaving.signal },
    );
    first.body?.on("error", () => undefined);
    leaving.abort();
    await expect.poll(() => first.body?.destroyed).toBe(true);
    const [rest, end] = await Promise.all([
      call("exec.attach", { exec_id: id, stdout: 4, stderr: 0 }).then(eventsOf),
      call("exec.attach", { exec_id: id, stdout: 6, stderr: 0 }).then(eventsOf),
    ]);
    expect(rest.map((event) => ("data" in event ? event.data : event.type)).join(" ")).toBe("b c exit");
    expect(end).toEqual([{ type: "exit", exit_code: 4, signal: null, timed_out: false }]);
    await expect(call("exec.attach", { exec_id: randomUUID(), stdout: 0, stderr: 0 })).rejects.toMatchObject({
      code: "not_found",
    });
  });

  it("a terminal is one: it echoes, has its size, and hangs up with its caller", async () => {
    const input = new PassThrough();
    const type = (bytes: string) => input.write(encodeShellFrame({ type: "bytes", bytes: Buffer.from(bytes) }));
    const reply = await call("shell", { exec_id: randomUUID(), columns: 90, rows: 20 }, { body: input });
    let shown = "";
    const controls: unknown[] = [];
    const reading = (async () => {
      for await (const frame of shellFramesOf(reply.body ?? Readable.from([]))) {
        if (frame.type === "bytes") shown += Buffer.from(frame.bytes).toString();
        else controls.push(frame.control);
      }
    })();
    type("stty size; echo $0\n");
    await expect.poll(() => shown).toMatch(/20 90\r\n-?\S*sh/);
    input.write(encodeShellFrame({ type: "control", control: { resize: { columns: 33, rows: 11 } } }));
    await expect
      .poll(() => {
        type("stty size\n");
        return shown;
      })
      .toContain("11 33");
    input.end();
    await reading;
    expect(controls).toHaveLength(1);
  });

  it("a port inside is reached", async () => {
    const server =
      "use IO::Socket::INET; my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1', LocalPort => 8088) or die; " +
      "$| = 1; print qq(up\\n); my $c = $s->accept; my $l = <$c>; print $c qq(got $l); close $c;";
    const listening = await call("exec", { exec_id: randomUUID(), argv: ["perl", "-e", server] });
    await new Promise((resolve) => listening.body?.once("data", resolve));
    const body = Readable.from(["hello\n"]);
    expect(await text((await call("connect", { port: 8_088 }, { body })).body ?? Readable.from([]))).toBe(
      "got hello\n",
    );
    await expect(call("connect", { port: 8_089 })).rejects.toMatchObject({ code: "unavailable" });
  });

  it("figures are those of the specification; what cannot be is refused", async () => {
    const { result } = await call("stats", {});
    expect(result).toMatchObject({ memory_limit_mb: 256, network_rx_bytes: 3, network_tx_bytes: 4 });
    await expect(call("exec", { argv: [] })).rejects.toMatchObject({ code: "bad_request" });
    await expect(call("files.list", {})).rejects.toMatchObject({ code: "bad_request" });
    const gone = handler({ method: "stats", sandboxId: "gone", params: {}, signal: new AbortController().signal });
    await expect(gone).rejects.toMatchObject({ code: "sandbox_invalid_state" });
    await expect(exec("", { argv: ["/no/such"] })).rejects.toMatchObject({ code: "config_validation_error" });
    await machine.pause();
    await expect(exec("true")).rejects.toMatchObject({ code: "sandbox_invalid_state" });
    await machine.resume();
  });
});
