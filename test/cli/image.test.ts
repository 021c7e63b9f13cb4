import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { startSandboxApi, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { holdOf, type Hold } from "../../src/fabric/job.ts";
import { IMAGE_BUILD_KIND } from "../../src/sandbox/contract/images/build-job.ts";
import { runHere, type Outcome } from "../../src/cli/cli.test-kit.ts";

const NODE = "node-1";
const TEMPLATE = 'base = "host"\n[variables]\nname = "a"\n[[commands]]\nrun = "echo {{name}}"\n';

let api: SandboxApi;
beforeEach(async () => {
  api = await startSandboxApi();
  await api.plane.report(NODE);
});
afterEach(() => api.close());

const run = (...argv: string[]): Promise<Outcome> =>
  runHere(["image", ...argv, "--server", api.url], { env: { ENGINE_TOKEN: "ann" } });

async function template(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "engine-cli-image-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, "image.toml");
  await writeFile(file, TEMPLATE);
  return file;
}

/** The job of the build that was asked for, and what it is given. */
async function claim(): Promise<{ hold: Hold; payload: unknown }> {
  const asked = {
    kinds: new Set([IMAGE_BUILD_KIND]),
    holder: NODE,
    workerId: NODE,
    jobsOf: "everybody" as const,
    labels: {},
    max: 1,
    waitMs: 5_000,
  };
  const [job] = await api.plane.fabric.claim(asked);
  if (job === undefined) throw new Error("no build was asked for");
  return { hold: holdOf(job), payload: job.payload };
}

async function finish({ hold, payload }: Awaited<ReturnType<typeof claim>>): Promise<void> {
  const { buildId } = payload as { buildId: string };
  const layer = { buildId, fence: hold.fence, parts: 1, sha256: "a".repeat(64), sizeBytes: 5, unpackedBytes: 9 };
  await api.plane.fabric.complete(hold, { layer });
}

test("an image is built, listed and deleted", async () => {
  const building = run("build", await template(), "--provider", "codex", "--var", "name=b", "--region", "eu");
  const job = await claim();
  expect(job.payload).toMatchObject({ template: { commands: [{ run: "echo b", user: "root" }] } });
  await finish(job);
  const { code, stdout, stderr } = await building;
  expect([code, stderr]).toEqual([0, ""]);
  const id = stdout.trim();
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
  expect((await run("list")).stdout).toContain(id);
  expect(JSON.parse((await run("list", "--region", "eu", "--json")).stdout)).toMatchObject([
    { image_id: id, provider: "codex", region: "eu", status: "available", size_bytes: 5 },
  ]);
  expect((await run("list", "--region", "us")).stdout).toBe("there are no images\n");
  expect((await run("share", id)).stdout).toBe(`image ${id} is shared\n`);
  expect(JSON.parse((await run("list", "--json")).stdout)).toMatchObject([{ image_id: id, shared: true }]);
  expect((await run("share", id, "--off")).stdout).toBe(`image ${id} is its owner's alone\n`);
  expect(JSON.parse((await run("share", id, "--off", "--json")).stdout)).toMatchObject({ shared: false });
  expect((await run("rm", id)).stdout).toBe(`deleted ${id}\n`);
  expect(await run("rm", id)).toMatchObject({ code: 1, stderr: expect.stringContaining("there is no image") });
});

test("a build that fails says why", async () => {
  const building = run("build", await template());
  const { hold } = await claim();
  await api.plane.fabric.fail(hold, { error: "commands[0]: it ended with exit code 1" });
  expect(await building).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("exit code 1") });
});

test("a build that nobody waits for is shown later", async () => {
  const { stdout } = await run("build", await template(), "--detach");
  const shown = await run("show", stdout.trim());
  expect(shown.stdout).toContain("queued");
  expect(JSON.parse((await run("show", stdout.trim(), "--json")).stdout)).toMatchObject({
    status: "queued",
    error: null,
  });
  expect(await run("show", "x")).toMatchObject({ code: 1 });
  expect(await run("build", "/nowhere/image.toml")).toMatchObject({ code: 2 });
  expect((await run("build", "--var", "x=1", await template())).stderr).toContain("has no such variable");
});
