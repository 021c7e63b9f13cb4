import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../src/core/waiting.test-kit.ts";
import { ask, only, send } from "./agent.test-kit.ts";
import { CLI_ENGINE, isAlive, startCli, type CliServer } from "./cli-engine.test-kit.ts";

/** Programs that say nothing, for as long as they are let. */
let cli: CliServer;
beforeAll(async () => {
  cli = await startCli();
});
afterAll(() => cli.remove());

test.each(["initialize", "session/new"])("a program that is silent at %s is given 15 s", async (silentAt) => {
  await cli.play([], { silentAt });
  const startedMs = performance.now();
  expect(only(await ask(cli.url, "Are you there?"), "run_error")).toMatchObject({ code: "engine_timeout" });
  expect(performance.now() - startedMs).toBeGreaterThan(15_000);
  expect(performance.now() - startedMs).toBeLessThan(20_000);
});

test("a test of a program that does not answer ends after 30 s", async () => {
  await cli.play([{ hang: true }]);
  const answer = await send(cli.url, "POST", "/v1/agent/engine/test", CLI_ENGINE);
  expect([answer.status, JSON.stringify(await answer.json())]).toEqual([504, expect.stringContaining("within 30 s")]);
});

test("a run ends after 60 s, and the program with its children", async () => {
  await cli.play([{ say: "I wait." }, { sleepers: ["child", "setsid"] }, { hang: true }]);
  const events = await ask(cli.url, "Wait.");
  expect(only(events, "run_error")).toMatchObject({ code: "timeout" });
  const [pids = []] = (await cli.noted("pids")) as number[][];
  expect(pids).toHaveLength(3);
  await eventually(async () => !(await Promise.all(pids.map(isAlive))).includes(true), 2_000);
});
