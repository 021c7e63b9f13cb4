import { afterEach, beforeEach, expect, test } from "vitest";
import { startSandboxApi, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi({ createBurst: 1_000, volumes: { perOwner: 1_000, mbPerOwner: 1_000_000 } });
  await api.plane.report("node-1");
});
afterEach(() => api.close());

const run = (...argv: string[]): Promise<Outcome> =>
  runHere(["sandbox", "volumes", ...argv, "--server", api.url], { env: { ENGINE_TOKEN: "ann" } });

/** With a sandbox that names them. */
async function make(...names: readonly string[]): Promise<string> {
  const volumes = names.map((name) => ({ name, mount_path: `/${name}`, size_mb: 16 }));
  const made = await api.call("POST", "/api/v1/sandboxes", { body: { agent_provider: "codex", volumes } });
  expect(made.status).toBe(202);
  return `/api/v1/sandboxes/${String(made.json["id"])}`;
}

test("volumes are listed and deleted", async () => {
  expect(await run("list")).toMatchObject({ code: 0, stdout: "there are no volumes\n", stderr: "" });
  const sandbox = await make("data", "cache");
  const { code, stdout } = await run("ls");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ID +NAME +OWNER +MIB +IN USE +LAST USED +EXPIRES/);
  expect(stdout).toMatch(/^[0-9a-f-]{36} +cache +ann +16 +yes +\S+Z +-/m);
  const listed = JSON.parse((await run("list", "--json")).stdout) as { id: string; name: string }[];
  expect(listed.map(({ name }) => name)).toEqual(["cache", "data"]);
  const ids = listed.map(({ id }) => id);
  const refused = await run("rm", ...ids);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("sandboxes name the volume cache");
  await api.call("DELETE", sandbox);
  expect(await run("rm", ids[0] ?? "")).toMatchObject({ code: 0, stdout: `deleted ${ids[0]}\n` });
  expect(JSON.parse((await run("delete", ids[1] ?? "", "--json")).stdout)).toEqual({ deleted: [ids[1]] });
  expect((await run("rm", ids[0] ?? "")).stderr).toContain("there is no volume");
  expect((await run("rm", "../sandboxes")).stderr).toContain("there is no volume");
  expect((await run("rm")).code).toBe(2);
});

test("all pages of a long list are shown", async () => {
  for (let i = 0; i < 26; i++) await make(...Array.from({ length: 8 }, (_, j) => `v-${i}-${j}`));
  const listed = JSON.parse((await run("list", "--json")).stdout) as { name: string }[];
  expect(new Set(listed.map(({ name }) => name)).size).toBe(208);
});
