import { expect, test } from "vitest";
import type { ToolCall } from "../tool.ts";
import { runTool } from "../tool.ts";
import { readSkill } from "./skills.ts";

test("a long skill is read in parts, each of whole characters", async () => {
  const text = `x${"😀€\n".repeat(12_000)}`;
  const call = { caller: { role: "read" }, deps: { skills: { read: async () => text } } } as unknown as ToolCall;
  const parts: string[] = [];
  for (let offset: unknown = 0; offset !== undefined;) {
    const { content, next_offset: next } = await runTool(readSkill, call, { name: "own", offset });
    expect(String(content).isWellFormed()).toBe(true);
    parts.push(String(content));
    offset = next;
  }
  expect(parts.length).toBeGreaterThan(3);
  expect(parts.join("")).toBe(text);
  expect(await runTool(readSkill, call, { name: "own", offset: 60_000 })).toEqual({ content: "" });
});
