import { describe, expect, test } from "vitest";
import { MCP_LIMITS } from "./limits.ts";
import { statementsOf, turnsOf } from "./statements.ts";

const of = (content: string) => statementsOf([{ role: "user", content }]);

describe("what is stated outright", () => {
  test.each([
    ["Remember that the build needs Node 22.", "fact", "the build needs Node 22."],
    ["please remember: the port is 8080", "fact", "the port is 8080"],
    ["Remember the staging host is heron.example", "fact", "the staging host is heron.example"],
    ["OK, don’t forget that releases are signed.", "fact", "releases are signed."],
    ["Keep in mind: tests share one database", "fact", "tests share one database"],
    ["FYI, version v1.2 is broken", "fact", "version v1.2 is broken"],
    ["We decided to use Postgres.", "decision", "We decided to use Postgres."],
    ["So we've finally agreed on weekly releases", "decision", "So we've finally agreed on weekly releases"],
    ["Remember that we decided to drop Redis", "decision", "we decided to drop Redis"],
    ["Decision: no ORM here", "decision", "no ORM here"],
    ["I prefer small commits.", "preference", "I prefer small commits."],
    ["From now on answer in German.", "preference", "From now on answer in German."],
    ["Lesson learned: never mock the clock", "learning", "never mock the clock"],
    ["It turns out the proxy drops the header.", "learning", "It turns out the proxy drops the header."],
    ["Runbook: stop the node, then drain it", "procedure", "stop the node, then drain it"],
    ["- Remember that lists are read too", "fact", "lists are read too"],
  ])("%s", (text, memoryType, content) => {
    expect(of(text)).toEqual([{ memoryType, content, turn: 1 }]);
  });

  test.each([
    "Do you remember that we had a port?",
    "Remember when we met?",
    "I remember that day well.",
    "I don't remember that it worked.",
    "Remember this",
    "Remember me",
    "We discussed what was decided.",
    "Should we have decided to use Postgres?",
    "> Remember that quotations are somebody else's",
    "```\nremember that code is no speech\n```",
    "",
  ])("%s says nothing", (text) => {
    expect(of(text)).toEqual([]);
  });

  test("is what people say, each once, in their order", () => {
    const said = "Hello. Remember that a is b. We decided to rest.\nremember that a is b.";
    expect(of(said).map(({ content }) => content)).toEqual(["a is b.", "We decided to rest."]);
    for (const role of ["assistant", "system", "tool"] as const)
      expect(statementsOf([{ role, content: said }])).toEqual([]);
  });

  test("is bounded, whatever is sent", () => {
    const many = Array.from({ length: 1_000 }, (_, i) => `Remember that item ${i} counts.`).join("\n");
    expect(of(many)).toHaveLength(MCP_LIMITS.statements);
    const [long] = of(`Remember that ${"word ".repeat(100_000)}`);
    expect(long?.content).toHaveLength(MCP_LIMITS.statementChars);
    const startedMs = performance.now();
    for (const bait of ["ok ", "we all now ", "remember ", "i always really ", "a. ", " "]) of(bait.repeat(300_000));
    expect(performance.now() - startedMs).toBeLessThan(10_000);
  });
});

test("a transcript in plain text is read as its speakers say", () => {
  expect(turnsOf("User: hello\nmore\n\n**Assistant:** hi\nTool: {}\nHuman: bye\nNote: this line is mine")).toEqual([
    { role: "user", content: "hello\nmore" },
    { role: "assistant", content: "hi" },
    { role: "tool", content: "{}" },
    { role: "user", content: "bye\nNote: this line is mine" },
  ]);
  expect(turnsOf("no speaker at all")).toEqual([{ role: "user", content: "no speaker at all" }]);
  expect(turnsOf("\n \n")).toEqual([]);
});
