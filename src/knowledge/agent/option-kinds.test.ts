import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { command, urlOrOff, variableNames } from "./option-kinds.ts";

const context = { baseDir: "", userHome: "" };

describe("a command", () => {
  it.each([
    ["agent --acp", ["agent", "--acp"]],
    ["  agent   -x  ", ["agent", "-x"]],
    [`"/opt/my agent/run" 'a "b" c' --name="two words"`, ["/opt/my agent/run", 'a "b" c', "--name=two words"]],
    [`agent "" $HOME;id`, ["agent", "", "$HOME;id"]],
  ])("%s is read as words, and by no shell", (text, words) => {
    expect(command.parse(text, context)).toEqual(words);
  });

  it.each(["", "   ", `agent "open`, `""`, "a\0b"])("%j is none", (text) => {
    expect(command.parse(text, context)).toBeUndefined();
  });

  it("is shown as a text that reads back to the same words", () => {
    const words = fc.array(fc.string({ unit: "grapheme-ascii" }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(words, (given) => {
        fc.pre(given[0] !== "");
        expect(command.parse(command.format(given), context)).toEqual(given);
      }),
    );
  });
});

it("names of variables are listed, and an address may be off", () => {
  expect(variableNames.parse("A_KEY, b2", context)).toEqual(["A_KEY", "b2"]);
  expect(variableNames.parse("A-KEY", context)).toBeUndefined();
  expect(urlOrOff.parse("OFF", context)).toBe("off");
  expect(urlOrOff.parse("http://h:1/mcp/v1", context)).toBe("http://h:1/mcp/v1");
  expect(urlOrOff.parse("elsewhere", context)).toBeUndefined();
});
