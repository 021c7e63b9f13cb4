import { expect, it } from "vitest";
import { mayUse } from "../../contract/agents/tool-rules.ts";

const ALL = { toolsEnabled: true, allowedTools: [], deniedTools: [] };

it.each([
  ["Write", "Write", true],
  ["Write", "write", false],
  ["Write", "Writer", false],
  ["Wr*", "Write", true],
  ["*te", "Write", true],
  ["W*i*e", "Write", true],
  ["*", "", true],
  ["a*a", "a", false],
  ["ab*ba", "aba", false],
  ["a**b", "ab", true],
  ["mcp__*__read", "mcp__files__read", true],
  [".*", "Write", false],
  ["Bash(rm *)", "Bash(rm -rf /)", true],
])("the pattern %s and the tool %s: %s", (pattern, name, isOne) => {
  expect(mayUse({ ...ALL, allowedTools: [pattern] }, [name])).toBe(isOne);
  expect(mayUse({ ...ALL, deniedTools: [pattern] }, [name])).toBe(!isOne);
});

it("a tool of several names is denied by each, and allowed by one", () => {
  const names = ["execute", "Run the tests", "Bash"];
  expect(mayUse({ ...ALL, allowedTools: ["Bash"] }, names)).toBe(true);
  expect(mayUse({ ...ALL, allowedTools: ["Bash"], deniedTools: ["execute"] }, names)).toBe(false);
  expect(mayUse({ ...ALL, toolsEnabled: false, allowedTools: ["*"] }, names)).toBe(false);
  // One that says no name is none that is allowed.
  expect(mayUse({ ...ALL, allowedTools: ["Bash"] }, [])).toBe(false);
});

it("takes no longer for a pattern that is made to", () => {
  const pattern = "*a".repeat(120);
  expect(mayUse({ ...ALL, allowedTools: [pattern] }, [`${"a".repeat(100_000)}b`])).toBe(false);
});
