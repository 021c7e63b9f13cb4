import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Clock } from "./clock.ts";
import { ANSWERED, createLog, GatheredOutput, readable } from "./log.ts";

/** A clock whose only timer a test lets go off. */
function heldTimer(): { clock: Pick<Clock, "after">; due: (() => void)[] } {
  const due: (() => void)[] = [];
  const after: Clock["after"] = (_, task) => {
    due.push(task);
    return { cancel: () => undefined };
  };
  return { clock: { after }, due };
}

describe("lines of requests", () => {
  function gathered() {
    const writes: string[] = [];
    const { clock, due } = heldTimer();
    const output = new GatheredOutput({ write: (text: string) => void writes.push(text) }, clock);
    const messages = () =>
      writes.map((text) =>
        text
          .trimEnd()
          .split("\n")
          .map((line) => (JSON.parse(line) as { msg: string }).msg),
      );
    return { log: createLog("info", output), output, messages, due };
  }

  test("wait for each other, and not for long", () => {
    const { log, messages, due } = gathered();
    for (let i = 0; i < 3; i++) log.info({ i }, ANSWERED);
    expect([messages(), due.length]).toEqual([[], 1]);
    due[0]?.();
    expect(messages()).toEqual([[ANSWERED, ANSWERED, ANSWERED]]);
    log.info({}, ANSWERED);
    expect(due).toHaveLength(2);
  });

  test("go out before any other line, which does not wait", () => {
    const { log, messages } = gathered();
    log.info({}, ANSWERED);
    log.warn("now");
    log.error({ err: new Error("x") }, "and now");
    expect(messages()).toEqual([[ANSWERED, "now"], ["and now"]]);
  });

  test("that are many do not wait", () => {
    const { log, messages } = gathered();
    for (let i = 0; i < 1_000; i++) log.info({ i, pad: "x".repeat(100) }, ANSWERED);
    expect(messages().length).toBeGreaterThan(1);
  });
});

test("a process that ends writes what waits", async () => {
  const file = fileURLToPath(new URL("log.ts", import.meta.url));
  const script = `
    import { ANSWERED, createLog } from ${JSON.stringify(file)};
    const log = createLog("info");
    for (let i = 0; i < 5000; i++) log.info({ i }, ANSWERED);
    process.exitCode = 3;`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", script], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  child.stderr.setEncoding("utf8").on("data", (part: string) => (text += part));
  const code = await new Promise((resolve) => child.once("close", resolve));
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { i: number; time: string });
  expect([code, lines.length, lines.at(-1)?.i]).toEqual([3, 5_000, 4_999]);
  expect(Math.abs(Date.parse(lines[0]?.time ?? "") - Date.now())).toBeLessThan(60_000);
});

test("logs of one process write in order, and listen to its end once", async () => {
  const file = fileURLToPath(new URL("log.ts", import.meta.url));
  const script = `
    import { ANSWERED, createLog } from ${JSON.stringify(file)};
    const logs = Array.from({ length: 20 }, () => createLog("info"));
    for (const [i, log] of logs.entries()) log.info({ i }, i % 3 === 0 ? "at once" : ANSWERED);
    console.log(process.listenerCount("exit"));`;
  const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", script]);
  const texts = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream].setEncoding("utf8").on("data", (part: string) => (texts[stream] += part));
  }
  await new Promise((resolve) => child.once("close", resolve));
  const order = [...texts.stderr.matchAll(/"i":(\d+)/g)].map(([, i]) => Number(i));
  expect(order).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(texts.stderr).not.toContain("MaxListeners");
  // One is Node's, or pino's.
  expect(Number(texts.stdout)).toBeLessThanOrEqual(2);
});

describe("on a terminal", () => {
  function shown(env: Record<string, string>) {
    const lines: string[] = [];
    const log = createLog(
      "info",
      readable((text) => lines.push(text), env),
    );
    return { log, text: () => lines.join("").replaceAll(/^\d\d:\d\d:\d\d\.\d{3} /gm, "TIME ") };
  }

  test("a line is for people, whatever is in it", () => {
    const { log, text } = shown({ NO_COLOR: "1" });
    log.info({ method: "GET", route: "/v1/x", status: 200, bytes: 12 }, ANSWERED);
    log.warn({ name: "two words", evil: "\u001b[2J\nx", nested: { a: [1] }, none: null }, "a \u0007 bell");
    log.info("only this");
    log.info({ only: true });
    expect(text()).toBe(
      "TIME info  answered method=GET route=/v1/x status=200 bytes=12\n" +
        'TIME warn  a \\u0007 bell name="two words" evil="\\u001b[2J\\nx" nested={"a":[1]} none=null\n' +
        "TIME info  only this\n" +
        "TIME info  only=true\n",
    );
  });

  test("an error stands below, with where it came from", () => {
    const { log, text } = shown({ NO_COLOR: "1" });
    log.error({ err: new Error("no \u001b[2J luck") }, "failed");
    const [first, second, third] = text().split("\n");
    expect(first).toBe("TIME error failed");
    expect(second).toBe("    Error: no \\u001b[2J luck");
    expect(third).toMatch(/^ +at .+log\.test\.ts/);
  });

  test("colours mark what stands out, where they are wanted", () => {
    const { log, text } = shown({});
    log.warn("x");
    expect(text()).toBe("TIME \u001b[33mwarn  \u001b[39mx\n");
  });
});
