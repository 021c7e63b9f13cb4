import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SESSION_STATES } from "./session-states.ts";
import { SANDBOX_STATES } from "./states.ts";
import { withSandboxStates } from "./states-docs.ts";

const written = readFileSync(new URL("../../../docs/sandboxes.md", import.meta.url), "utf8");

test("docs/sandboxes.md has the states as they are (npm run docs writes them)", () => {
  expect(written).toBe(withSandboxStates(written));
  for (const state of [...SANDBOX_STATES, ...SESSION_STATES]) expect(written).toContain(`\`${state}\``);
});

test("a text without a place for them is refused", () => {
  expect(() => withSandboxStates("# Sandboxes\n")).toThrow("no place for the states");
});
