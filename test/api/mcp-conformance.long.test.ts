import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { cleanEnv, startEngine, temporaryHome, type Engine } from "../support/engine.ts";

/**
 * The protocol's official suite against a real server: each of its scenarios passes, or `docs/mcp.md` says why it does not
 * apply. Those that do not are refused as the protocol says, and fail for no other reason.
 */
const DOCUMENT = new URL("../../docs/mcp.md", import.meta.url);

const program = installedBy("install-mcp-conformance");

let engine: Engine;
let removeHome: () => Promise<void>;
beforeAll(async () => {
  if (program === undefined) return;
  const { home, remove } = await temporaryHome();
  removeHome = remove;
  engine = await startEngine({ home, env: { ENGINE_SANDBOX_RUNTIME: "off", ENGINE_CA_HOME: join(home, "agent") } });
});
afterAll(async () => {
  if (program === undefined) return;
  await engine.stop();
  await removeHome();
});

/** Ends with 1 where a scenario fails. */
async function conformance(...args: readonly string[]): Promise<string> {
  const options = { env: cleanEnv(), cwd: engine.home, encoding: "utf8" } as const;
  try {
    return (await promisify(execFile)(program ?? "", args, options)).stdout;
  } catch (error) {
    return String((error as { stdout?: unknown }).stdout);
  }
}

type Check = { id: string; status: string; errorMessage?: string };

/** By scenario, what it checked. */
async function allChecks(): Promise<Map<string, Check[]>> {
  const results = join(engine.home, "results");
  for (const suite of ["active", "pending"]) {
    await conformance("server", "--url", `${engine.url}/mcp/v1`, "--suite", suite, "--output-dir", results);
  }
  const found = new Map<string, Check[]>();
  for (const folder of await readdir(results)) {
    const scenario = /^server-(.+)-\d{4}-\d{2}-\d{2}T/.exec(folder)?.[1];
    if (scenario === undefined) continue;
    const checks = JSON.parse(await readFile(join(results, folder, "checks.json"), "utf8")) as Check[];
    found.set(scenario, checks);
  }
  return found;
}

async function notApplying(): Promise<string[]> {
  const [, section = ""] = (await readFile(DOCUMENT, "utf8")).split("\n## Conformance\n");
  return Array.from(section.matchAll(/^\| `([a-z0-9-]+)`/gm), ([, scenario]) => scenario ?? "").toSorted();
}

/** What a server says that has no such method or tool. */
const NOT_THERE = /Method not found|there is no tool "|Tool '\w+' not found/;

describe.skipIf(program === undefined)("the conformance suite of MCP", { timeout: 120_000 }, () => {
  test("passes, but for the scenarios that the document names", async () => {
    const listed = Array.from(
      (await conformance("list", "--server")).matchAll(/^ {2}- (\S+)/gm),
      ([, name]) => name ?? "",
    );
    const checks = await allChecks();
    expect([...checks.keys()].toSorted()).toEqual(listed.toSorted());
    const passed = [...checks].filter(([, all]) =>
      all.every(({ status }) => status === "SUCCESS" || status === "INFO"),
    );
    expect(passed.length).toBeGreaterThan(0);
    const others = [...checks.keys()].filter((scenario) => !passed.some(([name]) => name === scenario));
    expect(others.toSorted()).toEqual(await notApplying());
    const failures = [...checks.values()].flat().filter(({ status }) => status === "FAILURE");
    expect(failures.filter(({ errorMessage = "" }) => !NOT_THERE.test(errorMessage))).toEqual([]);
  });
});
