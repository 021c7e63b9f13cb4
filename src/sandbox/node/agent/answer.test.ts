import { array, assert, constantFrom, nat, property, tuple } from "fast-check";
import { expect, it } from "vitest";
import type { NewSandboxEvent } from "../../contract/event.ts";
import { contentBlock } from "../../contract/content.ts";
import { Answer } from "./answer.ts";
import { AgentFault } from "./fault.ts";
import type { ToolUpdate } from "./updates.ts";
import { EVENT_BYTES, jsonBytes, piecesOf } from "./sizes.ts";

function answer() {
  const events: Pick<NewSandboxEvent, "type" | "data">[] = [];
  return { events, answer: new Answer((type, data) => void events.push({ type, data })) };
}

const chars = constantFrom("a", "€", "😀", "\u0001", '"', "\n", "\ud800");
const texts = array(
  tuple(chars, nat(12_000)).map(([char, times]) => char.repeat(times)),
  { maxLength: 6 },
);

it("cuts texts into pieces that events can say, and no character", () => {
  assert(
    property(texts, (parts) => {
      const pieces = piecesOf(parts.join(""));
      expect(pieces.join("")).toBe(parts.join(""));
      for (const piece of pieces) expect(jsonBytes(piece)).toBeLessThanOrEqual(EVENT_BYTES);
      const isWhole = parts.join("").isWellFormed();
      expect(pieces.every((piece) => piece.isWellFormed())).toBe(isWhole);
    }),
    { numRuns: 50 },
  );
});

it("completes exactly what deltas said, in blocks of the message", () => {
  assert(
    property(texts, (parts) => {
      const { events, answer: made } = answer();
      for (const part of parts) made.take({ type: "text", text: part, messageId: undefined });
      made.end();
      const said = (type: string) => events.filter((one) => one.type === type).map(({ data }) => data["text"]);
      expect(said("text_delta").join("")).toBe(parts.join(""));
      expect(made.content).toEqual(said("text_complete").map((text) => ({ type: "text", text })));
      expect(said("text_complete").join("")).toBe(parts.join(""));
      for (const { data } of events) expect(jsonBytes(data)).toBeLessThan(2 * EVENT_BYTES);
    }),
    { numRuns: 50 },
  );
});

it("ends a text where another message begins", () => {
  const { answer: made } = answer();
  for (const [text, messageId] of [
    ["a", "1"],
    ["b", "1"],
    ["c", "2"],
    ["d", undefined],
  ] as const) {
    made.take({ type: "text", text, messageId });
  }
  expect(made.content).toEqual([
    { type: "text", text: "ab" },
    { type: "text", text: "cd" },
  ]);
});

it("begins a tool that it hears of late, takes its input in parts, and results of each form", () => {
  const { events, answer: made } = answer();
  const tool = (toolCallId: string, more: Omit<ToolUpdate, "toolCallId">) =>
    made.take({ type: "tool", tool: { toolCallId, ...more } });
  tool("1", { status: "in_progress", title: "Edit a file", name: "Edit", rawInput: {} });
  tool("1", { rawInput: { path: "/a" } });
  tool("1", { status: "completed", content: [{ type: "diff", path: "/a", newText: "x" }] });
  tool("2", { title: "Look", status: "failed", rawOutput: { code: 1 } });
  expect(made.content).toEqual([
    { type: "tool_use", id: "1", name: "Edit", input: { path: "/a" } },
    {
      type: "tool_result",
      tool_use_id: "1",
      content: [{ type: "diff", path: "/a", old_text: null, new_text: "x" }],
      is_error: false,
    },
    { type: "tool_use", id: "2", name: "Look", input: {} },
    { type: "tool_result", tool_use_id: "2", content: { code: 1 }, is_error: true },
  ]);
  for (const block of made.content) expect(contentBlock.safeParse(block).success).toBe(true);
  expect(events.map(({ type }) => type)).toEqual([
    "tool_use_start",
    "tool_result",
    "tool_use_complete",
    "tool_use_start",
    "tool_result",
    "tool_use_complete",
  ]);
});

it("takes no more than a report can have, and keeps what there was", () => {
  const { answer: made } = answer();
  const fill = () => {
    for (let i = 0; i < 200; i++) made.take({ type: "text", text: "x".repeat(30_000), messageId: undefined });
  };
  expect(fill).toThrow(AgentFault);
  made.end();
  expect(jsonBytes(made.content)).toBeGreaterThan(2_500_000);
  expect(jsonBytes(made.content)).toBeLessThan(3_300_000);
});
