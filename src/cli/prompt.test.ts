import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { systemClock } from "../core/clock.ts";
import { systemRandom } from "../core/random.ts";
import { CliContext, type CliInput } from "../client/context.ts";
import { runCli } from "./main.ts";
import { askPassword, askText, confirm } from "../client/prompt.ts";

/** A terminal at which somebody types each text once it is asked for something. */
function terminal(...typed: (string | Buffer)[]) {
  const stdin: CliInput = Object.assign(new PassThrough(), { isTTY: true });
  const modes: boolean[] = [];
  let shown = "";
  const stderr = new PassThrough();
  stdin.setRawMode = (on) => modes.push(on);
  stderr.on("data", (chunk: Buffer) => {
    shown += chunk.toString();
    const next = shown.endsWith(": ") || shown.endsWith("] ") ? typed.shift() : undefined;
    if (next !== undefined) (stdin as PassThrough).write(next);
  });
  const migrations = () => Promise.resolve([]);
  const deps = {
    migrations,
    serve: () => Promise.resolve(0),
    rows: () => Promise.resolve({}),
    version: "",
    env: {},
    clock: systemClock,
    random: systemRandom,
  };
  const context = new CliContext({ ...deps, stdin, stderr, stdout: new PassThrough() });
  return { context, modes, shown: () => shown, stdin };
}

const hidden = { fromStdin: false, isNew: false };

describe("a password that is asked for", () => {
  test("is read without being shown, and the terminal is as it was", async () => {
    const at = terminal("correct horse\r");
    expect(await askPassword(at.context, hidden)).toBe("correct horse");
    expect(at.modes).toEqual([true, false]);
    expect(at.shown()).toBe("Password: \n");
    expect(at.stdin.isPaused()).toBe(true);
  });

  test.for([
    ["ab\u007fc\r", "ac"],
    ["\u007fa\b\bb\n", "b"],
    ["wrong\u0015right\r", "right"],
    ["häß😀\u007fn\r", "häßn"],
    ["a\u0004b\r", "ab"],
  ])("takes the keys that edit a line: %j", async ([typed = "", password]) => {
    expect(await askPassword(terminal(typed).context, hidden)).toBe(password);
  });

  test("may arrive in pieces, in the middle of a character too", async () => {
    const at = terminal();
    const asked = askPassword(at.context, hidden);
    for (const byte of Buffer.from("ä€\r")) (at.stdin as PassThrough).write(Buffer.from([byte]));
    expect(await asked).toBe("ä€");
  });

  test.for(["\u0003", "abc\u0003", "\u0004"])("is cancelled by %j, and the terminal is as it was", async (typed) => {
    const at = terminal(typed);
    await expect(askPassword(at.context, hidden)).rejects.toThrow("cancelled");
    expect(at.modes).toEqual([true, false]);
  });

  test("is asked for twice when it is new, and must be the same", async () => {
    const fresh = { fromStdin: false, isNew: true };
    expect(await askPassword(terminal("one two\r", "one two\r").context, fresh)).toBe("one two");
    // Both lines pasted at once.
    expect(await askPassword(terminal("one two\rone two\r").context, fresh)).toBe("one two");
    await expect(askPassword(terminal("one\r", "two\r").context, fresh)).rejects.toThrow("differ");
    await expect(askPassword(terminal("\r").context, fresh)).rejects.toThrow("no password");
  });

  test("is never read where the terminal would show it", async () => {
    const at = terminal("secret\r");
    delete at.stdin.setRawMode;
    await expect(askPassword(at.context, hidden)).rejects.toThrow("--password-stdin");
  });
});

test("a name that is asked for is shown by the terminal itself", async () => {
  const at = terminal("ann\n");
  expect(await askText(at.context, "User: ", "name it")).toBe("ann");
  expect(at.modes).toEqual([]);
});

test("only yes is yes", async () => {
  await confirm(terminal("y\n").context, "Sure?");
  await confirm(terminal("YES\n").context, "Sure?");
  for (const text of ["\n", "n\n", "yup\n"]) {
    await expect(confirm(terminal(text).context, "Sure?")).rejects.toThrow("nothing was changed");
  }
});

describe("engine serve, where the server needs a password", () => {
  const serve = async ({ context }: ReturnType<typeof terminal>) => {
    const typed: (string | undefined)[] = [];
    const code = await runCli(["serve"], {
      ...context.deps,
      serve: async ({ askPassword: ask }) => {
        typed.push(await ask?.("Others can reach it."));
        return 0;
      },
    });
    return { code, typed };
  };

  test("says why, and asks for it twice", async () => {
    const at = terminal("battery staple\r", "battery staple\r");
    expect(await serve(at)).toEqual({ code: 0, typed: ["battery staple"] });
    expect(at.shown()).toBe("Others can reach it.\nNew password: \nThe same again: \n");
  });

  test("asks nobody where nobody sits", async () => {
    const at = terminal();
    at.stdin.isTTY = false;
    expect(await serve(at)).toEqual({ code: 0, typed: [undefined] });
  });
});
