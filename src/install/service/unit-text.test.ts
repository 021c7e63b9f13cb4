import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { ManualClock } from "../../core/clock.ts";
import { lacks } from "../../core/gates.test-kit.ts";
import { headerLine, readHeader, SERVE_UNIT, type ServiceDefinition } from "./definition.ts";
import { Launchd } from "./launchd.ts";
import { Systemd } from "./systemd.ts";
import { argumentWord, assignmentWord, programWord } from "./unit-text.ts";

/** What would end a word, a line, a section or a comment, or name something, if it were written as it is. */
const HOSTILE = [
  "plain",
  "",
  "two words",
  'a" "b',
  "a'b",
  "a\\",
  "%h/%n %%",
  "$HOME ${HOME} $$",
  "a\nExecStart=/bin/false\n[Service]",
  "a\tb\rc\u0001\u007f",
  "; /bin/false",
  "-- --> </string><key>Program</key> ]]> &amp; &#10;",
  "é 漢字 😀 \u2028\u0085",
  "@-:+!/bin/false",
  "#not a comment",
];

test("a word is one line between quotes, and nothing in it has a meaning of its own", () => {
  for (const text of HOSTILE) {
    expect(argumentWord(text)).toMatch(/^"(?:[\w@+=:,./-]|%%|\$\$|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*"$/);
  }
});

test("what systemd takes in no form is refused in a sentence", () => {
  expect(() => programWord('/opt/a"b/engine')).toThrow(/the path of the program contains "\\"", which systemd/);
  expect(() => programWord("/opt/a\nb")).toThrow("choose another path");
  expect(() => programWord("engine")).toThrow("is not absolute");
  expect(() => assignmentWord("ENGINE_HOME", "/a\u0001b")).toThrow("ENGINE_HOME contains");
  expect(() => argumentWord("a\0b")).toThrow("NUL");
  expect(() => argumentWord("a\ud800b")).toThrow("half a character");
});

const run = () => Promise.resolve({ code: 0, stdout: "", stderr: "" });
const clock = new ManualClock();
const systemd = new Systemd(SERVE_UNIT, { run, clock, configHome: "/c", userId: 1000, runtimeDir: undefined });

function definitionWith(text: string, program = "/usr/bin/true"): ServiceDefinition {
  return {
    command: [program, text],
    listen: { host: "127.0.0.1", port: 7777 },
    home: `/home/${text.replaceAll(/\p{Cc}/gu, "_")}`,
    configFile: "/home/u/service.toml",
  };
}

test("a file says for whom it was written, whatever the paths are", () => {
  const launchd = new Launchd(SERVE_UNIT, { run, clock, userHome: "/Users/u", userId: 501 });
  for (const text of HOSTILE) {
    const definition = definitionWith(text);
    expect(readHeader(systemd.render(definition))).toEqual(definition);
    const printable = definitionWith(text.replaceAll(/[\p{Cc}--[\t\n\r]]/gv, ""));
    expect(readHeader(launchd.render(printable))).toEqual(printable);
    expect(headerLine(definition).split("\n")).toHaveLength(1);
  }
  expect(readHeader("[Service]\nExecStart=/bin/true\n")).toBeUndefined();
  expect(readHeader('# engine service install wrote this file: {"home":1}')).toBeUndefined();
});

describe.skipIf(lacks("systemd-analyze"))("systemd itself", () => {
  const folder = mkdtempSync(join(tmpdir(), "engine-units-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  function verify(unit: string) {
    const file = join(folder, "engine.service");
    writeFileSync(file, unit);
    const env = { ...process.env, XDG_RUNTIME_DIR: folder, LC_ALL: "C" };
    const { status, stderr } = spawnSync("systemd-analyze", ["--user", "verify", file], { encoding: "utf8", env });
    // Units of the machine itself may have faults of their own.
    return { status, said: stderr.split("\n").filter((line) => line.includes("engine.service")) };
  }

  test("has nothing to say of a unit, whatever its words are", () => {
    // All in one: each start of systemd-analyze takes a while.
    const program = join(folder, "a b%n;$HOME{é", "engine");
    mkdirSync(join(program, ".."));
    writeFileSync(program, "#!/bin/sh\n");
    chmodSync(program, 0o755);
    const definition = { ...definitionWith("x", program), command: [program, ...HOSTILE] };
    expect(verify(systemd.render({ ...definition, home: `/home/${HOSTILE.slice(0, 9).join("")}` }))).toEqual({
      status: 0,
      said: [],
    });
  });

  test("complains where a program is not there", () => {
    expect(verify(systemd.render(definitionWith("x", join(folder, "missing")))).said.join("\n")).toContain("missing");
  });
});

describe.skipIf(lacks("python3"))("a property list", () => {
  test("has the words as they are, read by another program", () => {
    const words = HOSTILE.map((text) => text.replaceAll(/[\p{Cc}--[\t\n\r]]/gv, ""));
    const launchd = new Launchd(SERVE_UNIT, { run, clock, userHome: "/Users/u", userId: 501 });
    const definition = { ...definitionWith("x"), command: ["/opt/engine", ...words], home: `/Users/${words.join("")}` };
    const read = "import json,plistlib,sys; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    const text = execFileSync("python3", ["-c", read], { input: launchd.render(definition), encoding: "utf8" });
    expect(JSON.parse(text)).toMatchObject({
      Label: "engine.serve",
      ProgramArguments: ["/opt/engine", ...words, "serve", "--addr", "127.0.0.1:7777"],
      EnvironmentVariables: { ENGINE_HOME: definition.home, ENGINE_CONFIG: definition.configFile },
      KeepAlive: true,
      ThrottleInterval: 10,
    });
  });

  test("what XML cannot hold is refused", () => {
    const launchd = new Launchd(SERVE_UNIT, { run, clock, userHome: "/Users/u", userId: 501 });
    expect(() => launchd.render(definitionWith("a\u0001"))).toThrow("no property list can hold");
  });
});
