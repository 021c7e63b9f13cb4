import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, test } from "vitest";
import { runChild } from "./cli.test-kit.ts";

const scripts = new Map<string, string>();
beforeAll(async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await runChild(["completions", shell]);
    expect(code).toBe(0);
    scripts.set(shell, stdout);
  }
});

const script = (shell: string) => scripts.get(shell) ?? "";

/** What bash offers after the words, the last of which is being typed. */
function complete(...words: string[]): string[] {
  const probe = `${script("bash")}
COMP_WORDS=(engine ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}
_engine; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync("bash", ["--norc", "-c", probe], { encoding: "utf8" });
  expect([status, stderr]).toEqual([0, ""]);
  return stdout.split("\n").filter((word) => word !== "");
}

describe("bash", () => {
  test("completes commands, flags, choices and shells", () => {
    const ofS = ["sandbox", "serve", "server", "service", "sessions", "setup", "sql", "status", "sync"];
    expect(complete("s").toSorted()).toEqual(ofS);
    expect(complete("ingest", "")).toContain("push");
    expect(complete("ingest", "push", "--t")).toEqual(["--table", "--token"]);
    expect(complete("sql", "--format", "")).toEqual([
      "table",
      "json",
      "ndjson",
      "csv",
      "tsv",
      "markdown",
      "arrow",
      "parquet",
    ]);
    expect(complete("sql", "SELECT 1", "--fo")).toEqual(["--format"]);
    expect(complete("completions", "")).toEqual(expect.arrayContaining(["bash", "zsh", "fish"]));
    expect(complete("sandbox", "volumes", "l")).toEqual(["list"]);
    expect(complete("create-table", "--ret")).toEqual(["--retention-days"]);
  });

  test("offers nothing where a value of one's own is due", () => {
    expect(complete("sql", "--db", "")).toEqual([]);
    expect(complete("ingest", "push", "--table", "")).toEqual([]);
  });

  test("offers files where a file is due", () => {
    expect(complete("serve", "--config", "/etc/pass")).toContain("/etc/passwd");
  });
});

test.for(["zsh", "fish"])("%s knows every command, flag and choice", (shell) => {
  const text = script(shell);
  for (const word of ["create-table", "push", "retention-days", "idempotency-key", "ndjson"])
    expect(text).toContain(word);
  // Every quote that is opened is closed: what a shell would stumble over first.
  for (const line of text.split("\n").filter((line) => !line.startsWith("#"))) {
    const quotes = line.replace(/\\\\|\\'|'\\''/g, "").split("'").length - 1;
    expect(quotes % 2 === 0 ? "" : line).toBe("");
  }
});
