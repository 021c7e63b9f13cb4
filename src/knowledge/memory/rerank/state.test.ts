import { expect, test } from "vitest";
import { createLog } from "../../../core/log.ts";
import type { RerankSetup } from "./setup.ts";
import { RerankWatch, type RerankState } from "./state.ts";

/** What the operator reads in the log about reranking. */

const MODEL = { model: { id: "m", files: {} as never, sessions: 1 } };
const FAILING: RerankState = { state: "failing", model: "m", reason: "crash" };
const READY: RerankState = { state: "ready", model: "m", reason: undefined };

function watched(setup: RerankSetup) {
  const lines: string[] = [];
  return { lines, watch: new RerankWatch(setup, createLog("debug", { write: (line) => void lines.push(line) })) };
}

test("one line when a model begins to fail, and one when it works again", () => {
  const { lines, watch } = watched(MODEL);
  expect(watch.state).toMatchObject({ state: "loading", model: "m" });
  for (const state of [READY, FAILING, FAILING, READY, READY]) watch.note(state);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/"reason":"crash".*recalls are not reranked for now/);
  expect(lines[1]).toContain("recalls are reranked again");
  expect(watch.state).toEqual(READY);
});

test("one line when the model is not there, and none where nobody asked for one", () => {
  const missing = watched({ off: "no folder has the model m" });
  missing.watch.begin();
  missing.watch.begin();
  expect(missing.lines).toHaveLength(1);
  expect(missing.lines[0]).toContain("no folder has the model m");
  const unset = watched({ off: undefined });
  unset.watch.begin();
  expect(unset.lines).toEqual([]);
  expect(unset.watch.state).toEqual({ state: "off", model: undefined, reason: undefined });
});
