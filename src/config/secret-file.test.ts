import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeConfig } from "./describe.ts";
import { renderConfigurationDoc } from "./docs.ts";
import { failure, load } from "./option-samples.test-kit.ts";
import { option } from "./option.ts";
import { withRows } from "./options.ts";
import { path as pathKind } from "./kinds.ts";
import { fileVariableOf } from "./secret-file.ts";

let folder = "";
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "engine-secret-"))));
afterAll(() => rmSync(folder, { recursive: true }));

/** A file with this content that its owner alone can read, unless `mode` says otherwise. */
function fileWith(content: string | Uint8Array, mode = 0o600): string {
  const path = join(mkdtempSync(join(folder, "one-")), "secret");
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

const loadToken = (path: string) => load({ env: { ENGINE_TOKEN_FILE: path } });

describe("a secret in a file", () => {
  const withSecrets = Object.values(withRows(load().rows)).filter((row) => row.secret === true);

  test("can be given for every option that has something secret in it", () => {
    expect(withSecrets.length).toBeGreaterThan(10);
    const page = renderConfigurationDoc([{ title: "Features", options: load().rows }]);
    for (const row of withSecrets) {
      const variable = fileVariableOf(row);
      expect(variable).toBe(`${row.env}_FILE`);
      expect(page).toContain(`\`${variable}\` names a file`);
      const error = failure(() => load({ env: { [variable ?? ""]: join(folder, "absent") } }));
      expect(error.message.startsWith(`${variable}: cannot read the secret: ENOENT`)).toBe(true);
      expect(error.exitCode).toBe(2);
    }
  });

  test("is that of its variable, without the line break at its end", () => {
    for (const content of ["abc.DEF-1", "abc.DEF-1\n", "abc.DEF-1\r\n"]) {
      const loaded = loadToken(fileWith(content));
      expect(loaded.config.token).toBe("abc.DEF-1");
      expect(loaded.origins.token).toBe("ENGINE_TOKEN_FILE");
      expect(loaded.warnings).toEqual([]);
      expect(JSON.stringify(describeConfig(loaded))).not.toContain("abc.DEF-1");
    }
  });

  test("may be behind a link, by a path that starts at the working directory; an empty variable counts as unset", () => {
    const link = join(folder, "link");
    symlinkSync(fileWith("abc"), link);
    expect(load({ env: { ENGINE_TOKEN_FILE: "link" }, workingDir: folder }).config.token).toBe("abc");
    expect(loadToken(" ").config.token).toBeUndefined();
  });

  test("is refused beside its variable, and gives way to a flag", () => {
    const env = { ENGINE_TOKEN_FILE: fileWith("abc") };
    const error = failure(() => load({ env: { ...env, ENGINE_TOKEN: "hunter2" } }));
    expect(error.message).toBe("ENGINE_TOKEN and ENGINE_TOKEN_FILE are both set: unset one of them");
    expect(load({ env, flags: { token: "flag" } }).config.token).toBe("flag");
  });

  test.for([
    ["is no text", Uint8Array.of(0xff, 0xfe), "is not UTF-8 text"],
    ["is empty", " \n", "is empty"],
    ["is far too long", "x".repeat(1_048_577), "has more than 1048576 bytes"],
    ["is not what the option takes", "hunter2 hunter2", "ENGINE_TOKEN_FILE is "],
    ["has a second line", "hunter2\nhunter2", "ENGINE_TOKEN_FILE is "],
  ] as const)("that %s stops the start, and is not in the message", ([, content, expected]) => {
    const error = failure(() => loadToken(fileWith(content)));
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(expected);
    expect(error.message).not.toContain("hunter2");
  });

  test("that is no file stops the start at once, a pipe that nobody writes to included", () => {
    const pipe = join(folder, "pipe");
    expect(spawnSync("mkfifo", [pipe]).status).toBe(0);
    for (const path of [pipe, folder, "/dev/zero"]) {
      expect(failure(() => loadToken(path)).message).toBe(`ENGINE_TOKEN_FILE: ${path} is not a file`);
    }
  });

  test("that everybody can write is refused; one that everybody can read gets a warning", () => {
    expect(failure(() => loadToken(fileWith("abc", 0o602))).message).toContain("can write");
    const path = fileWith("abc", 0o644);
    expect(loadToken(path).warnings).toEqual([
      `ENGINE_TOKEN_FILE: every user of this machine can read ${path}; chmod 0400 keeps it for its owner`,
    ]);
  });
});

test("only secrets have such a variable, and no other option may have its name", () => {
  expect(load({ env: { ENGINE_ROLES_FILE: "/x" } }).warnings[0]).toContain("ENGINE_ROLES_FILE is no option");
  const row = option({ env: "ENGINE_TOKEN_FILE", kind: pathKind, default: "", side: "S", doc: "" });
  expect(() => withRows({ other: row })).toThrow("two options are called ENGINE_TOKEN_FILE");
});
