import { readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { EngineError } from "../../core/errors.ts";
import { silentLog } from "../../core/log.ts";
import { openConfinement } from "../../io/confinement/open-confinement.ts";
import { signalProcess } from "../../core/signals.test-kit.ts";
import { eventually } from "../../core/waiting.test-kit.ts";
import { chainedLets, createTranslatorHarness, kqlRequest, type TranslatorHarness } from "./translator.test-kit.ts";
import type { TextBounds, Translator, TranslatorOptions } from "./translator.ts";

const MIB = 1024 * 1024;
/** Takes a second or more to bind. */
const SLOW = chainedLets(1_000);

let harness: TranslatorHarness;

afterEach(async () => harness.close());

function open(options: Partial<TranslatorOptions> = {}): Translator {
  // The machine of the tests may be slow.
  harness = createTranslatorHarness({ maxTextMs: 300_000, maxWaitMs: 300_000, ...options });
  return harness.translator;
}

function bounds(signal: AbortSignal = new AbortController().signal, memoryBytes = 1024 * MIB): TextBounds {
  return { signal, memoryBytes };
}

const translate = (text: string, with_ = bounds()) => harness.translator.translate(kqlRequest(text), with_);

/** The code and the message of what a promise rejects with. */
async function failure(work: Promise<unknown>): Promise<EngineError> {
  const error = await work.then(
    (answer) => new Error(`answered ${JSON.stringify(answer)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof EngineError) return error;
  throw error;
}

const isAlive = (pid: number | undefined): boolean => {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("one process translates all texts, and keeps nothing of them", async () => {
  const translator = open();
  expect(translator.pid()).toBeUndefined();
  const [answer, names] = await Promise.all([translate("print x = 1"), translator.names("events | take 1", bounds())]);
  expect(answer).toMatchObject({ kind: "query", columns: [{ name: "x", type: "long" }] });
  expect(names).toEqual({ tables: ["events"], needsAllTables: false });
  const pid = translator.pid();
  expect(await failure(translate("print x ="))).toMatchObject({ code: "parse_error", details: { line: 1 } });
  expect(await translate("print x = 1")).toEqual(answer);
  expect(translator.pid()).toBe(pid);
});

test("nothing is left of it when it is closed", async () => {
  const translator = open();
  await translate("print x = 1");
  const pid = translator.pid();
  await translator.close();
  expect(isAlive(pid)).toBe(false);
  expect(readdirSync(`${harness.folder}/tmp`)).toEqual([]);
  expect((await failure(translate("print x = 1"))).code).toBe("unavailable");
});

test("closing it ends what it is at, and what waits", async () => {
  const translator = open();
  await translate("print x = 1");
  const failures = Promise.all([failure(translate(SLOW)), failure(translate("print x = 1"))]);
  await translator.close();
  expect((await failures).map(({ code }) => code)).toEqual(["unavailable", "unavailable"]);
});

describe("a process that is killed", () => {
  test("between two texts is replaced before the next one", async () => {
    const translator = open();
    await translate("print x = 1");
    const pid = translator.pid();
    signalProcess(pid, "SIGKILL");
    await eventually(() => translator.pid() !== pid);
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
  });

  test("in the middle of a text by somebody else is replaced, and the text is translated again", async () => {
    const translator = open();
    await translate("print x = 1");
    const pid = translator.pid();
    const answer = translate("print x = 1");
    signalProcess(pid, "SIGKILL");
    expect(await answer).toMatchObject({ kind: "query" });
    expect(translator.pid()).not.toBe(pid);
  });

  test("again and again in the middle of one text is not started for ever", async () => {
    const translator = open();
    await translate("print x = 1");
    const answer = failure(translate(SLOW));
    const over = new AbortController();
    void answer.finally(() => over.abort());
    let last: number | undefined;
    while (!over.signal.aborted) {
      const pid = translator.pid();
      if (pid !== undefined && pid !== last) signalProcess(pid, "SIGKILL");
      last = pid;
      await sleep(20);
    }
    expect(await answer).toMatchObject({ code: "query_failed", message: /translator of KQL ended with SIGKILL/ });
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
  });
});

describe("a text that takes too long", () => {
  test("ends when the time of its query is up, and kills the process where it goes on", async () => {
    const translator = open({ cancelGraceMs: 50 });
    await translate("print x = 1");
    const pid = translator.pid();
    const stop = new AbortController();
    const slow = failure(translate(SLOW, bounds(stop.signal)));
    const next = translate("print x = 1");
    await sleep(100);
    stop.abort(new EngineError("budget_exceeded", "the time is up"));
    expect((await slow).message).toBe("the time is up");
    expect(await next).toMatchObject({ kind: "query" });
    expect(translator.pid()).not.toBe(pid);
  });

  test("that nobody waits for any more does not cost the process where it ends soon", async () => {
    const translator = open({ cancelGraceMs: 60_000 });
    await translate("print x = 1");
    const pid = translator.pid();
    const stop = new AbortController();
    const slow = failure(translate(SLOW, bounds(stop.signal)));
    await sleep(50);
    stop.abort(new EngineError("cancelled", "the client left"));
    expect((await slow).code).toBe("cancelled");
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
    expect(translator.pid()).toBe(pid);
  });

  test("is ended whatever the time of its query", async () => {
    const translator = open({ maxTextMs: 300 });
    await translate("print x = 1");
    const pid = translator.pid();
    const error = await failure(translate(SLOW));
    expect(error).toMatchObject({ code: "budget_exceeded", message: /more than 300 ms to be translated/ });
    expect(error.details.budget).toMatchObject({ name: "wall_clock_ms" });
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
    expect(translator.pid()).not.toBe(pid);
  });
});

describe("a text that takes too much memory", () => {
  const HUNGRY = `print x = 1 ${"| where x == 1 ".repeat(300_000)}`;

  test("is ended by the watchdog, at what its query may take", async () => {
    const translator = open();
    await translate("print x = 1");
    const error = await failure(translate(HUNGRY, bounds(undefined, 8 * MIB)));
    expect(error.code).toBe("budget_exceeded");
    expect(error.details.budget).toMatchObject({ name: "memory_bytes", allowed: 8 * MIB });
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
    expect(translator.pid()).toBeGreaterThan(0);
  });

  test.runIf(process.platform === "linux")("finds the limit of the kernel on its process", async () => {
    const translator = open({ memoryBytes: 256 * MIB });
    await translate("print x = 1");
    const limits = readFileSync(`/proc/${translator.pid()}/limits`, "utf8");
    const bytes = Number(/Max data size\s+(\d+)/.exec(limits)?.[1]);
    expect([bytes >= 256 * MIB, bytes <= 2048 * MIB]).toEqual([true, true]);
  });
});

describe("the line", () => {
  test("is served in order, and bounded in length", async () => {
    const translator = open({ maxQueued: 2 });
    await translate("print x = 1");
    const order: string[] = [];
    const asked = [SLOW, "print b = 2", "print c = 3"].map((text) =>
      translate(text)
        .catch(() => {})
        .then(() => order.push(text)),
    );
    const refused = await failure(translate("print d = 4"));
    expect(refused).toMatchObject({ code: "too_many_requests", details: { headers: { "Retry-After": "1" } } });
    await Promise.all(asked);
    expect(order).toEqual([SLOW, "print b = 2", "print c = 3"]);
    expect(translator.pid()).toBeGreaterThan(0);
  });

  test("is bounded in time, and left by whoever gives up", async () => {
    open({ maxWaitMs: 200 });
    await translate("print x = 1");
    const slow = translate(SLOW).catch(() => {});
    const stop = new AbortController();
    const left = failure(translate("print x = 1", bounds(stop.signal)));
    const late = failure(translate("print x = 1"));
    stop.abort(new EngineError("cancelled", "the client left"));
    expect((await left).code).toBe("cancelled");
    expect((await late).code).toBe("too_many_requests");
    await slow;
    expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
  });

  test("is counted", async () => {
    open();
    await translate("print x = 1");
    const slow = translate(SLOW).catch(() => {});
    const waiting = translate("print x = 1");
    expect(await harness.metrics.registry.metrics()).toContain("engine_kql_waiting 1");
    await Promise.all([slow, waiting]);
    const text = await harness.metrics.registry.metrics();
    expect(text).toContain("engine_kql_waiting 0");
    expect(text).toContain('engine_kql_translation_duration_seconds_count{stage="translate"} 3');
    expect(text).toContain('engine_kql_translator_starts_total{type="snapshot"} 1');
  });
});

test.runIf((await openConfinement({ log: silentLog, tempDir: tmpdir() })).isOn)(
  "the process is confined, and goes first when memory runs out",
  async () => {
    const translator = open();
    await translate("print x = 1");
    const folder = `/proc/${translator.pid()}`;
    const status = readFileSync(`${folder}/status`, "utf8");
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(status).toMatch(/^Seccomp:\s+2$/m);
    expect(readFileSync(`${folder}/oom_score_adj`, "utf8")).toBe("1000\n");
  },
);

test("a process that finds no confinement where there is one takes no texts", async () => {
  open({ confinement: { name: "leaky", isOn: true, wrap: (command) => [...command] } });
  expect(await failure(translate("print x = 1"))).toMatchObject({ code: "unavailable" });
});

test("a process that does not start is no use to anybody, and is tried again by the next text", async () => {
  const isOn = { now: true };
  const confinement = {
    isOn: false,
    name: "test",
    wrap: (command: readonly string[]) => (isOn.now ? ["/bin/false"] : [...command]),
  };
  open({ confinement });
  expect(await failure(translate("print x = 1"))).toMatchObject({ code: "unavailable", message: /does not start/ });
  isOn.now = false;
  expect(await translate("print x = 1")).toMatchObject({ kind: "query" });
});
