import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { startSandboxApi, type SandboxApi } from "../sandbox-routes/sandboxes.test-kit.ts";
import { EngineError } from "../../src/core/errors.ts";
import type { NodeCallHandler } from "../../src/sandbox/contract/link/calls.ts";
import { runHere, type RunOptions } from "../../src/cli/cli.test-kit.ts";
import { SeenOutput } from "../../src/cli/sandbox.test-kit.ts";

type Params = { path: string; mode?: number };

/** The files of a node that keeps them in memory. */
const files = new Map<string, { bytes: Buffer; mode: number | undefined }>();
/** After how many bytes a download breaks. */
let breaksAt: number | undefined;
const answer: NodeCallHandler = async ({ method, params, body }) => {
  const { path, mode } = params as Params;
  if (method === "files.put") files.set(path, { bytes: await buffer(body ?? Readable.from([])), mode });
  const file = files.get(path);
  if (file === undefined) throw new EngineError("file_not_found", `"${path}": there is no such file`);
  const size = file.bytes.length;
  const entry = { path, size, is_dir: false, mode: 0o644, modified_at: "2026-01-01T00:00:00.000Z", etag: '"e"' };
  if (method === "files.put") return { result: { ...entry, created: true } };
  return { result: { ...entry, start: 0, end: size - 1 }, body: Readable.from(piecesOf(file.bytes)) };
};

async function* piecesOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes.subarray(0, breaksAt);
  if (breaksAt !== undefined) throw new Error("the node is gone");
}

let api: SandboxApi;
let id: string;
let folder: string;
beforeAll(async () => {
  api = await startSandboxApi();
  api.onCall.handle = answer;
  ({ id } = await api.make({}, "creating", "running"));
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-cli-copy-"));
  files.clear();
  breaksAt = undefined;
});
afterEach(() => rm(folder, { recursive: true }));
afterAll(() => api.close());

const cp = (from: string, to: string, options: RunOptions = {}) =>
  runHere(["sandbox", "cp", from, to, "--server", api.url], { env: { ENGINE_TOKEN: "ann" }, ...options });
const BYTES = Buffer.alloc(3 * 2 ** 20 + 1, Buffer.from([0, 1, 254, 255]));
const DONE = { code: 0, stdout: "", stderr: "" };

test("a file goes in with its mode and comes out, whatever its name", async () => {
  const [here, back] = [join(folder, "a b#ü?.bin"), join(folder, "back")];
  await writeFile(here, BYTES);
  await chmod(here, 0o750);
  const there = "/home/agent/a b/100% #ü?&.bin";
  expect(await cp(here, `${id}:${there}`)).toEqual(DONE);
  expect([...files.keys()]).toEqual([there]);
  expect(files.get(there)).toEqual({ bytes: BYTES, mode: 0o750 });
  expect(await cp(`${id}:${there}`, back)).toEqual(DONE);
  expect((await readFile(back)).equals(BYTES)).toBe(true);
});

test("a folder takes the name of the file; a path is from the root of the sandbox on", async () => {
  const here = join(folder, "data.csv");
  await writeFile(here, "1");
  expect(await cp(here, `${id}:/tmp/x/`)).toEqual(DONE);
  expect(await cp(here, `${id}:plain`)).toEqual(DONE);
  expect([...files.keys()]).toEqual(["/tmp/x/data.csv", "/plain"]);
  expect(await cp(`${id}:/plain`, `${folder}/`)).toEqual(DONE);
  expect(await readFile(join(folder, "plain"), "utf8")).toBe("1");
});

test("- is standard input and output", async () => {
  expect(await cp("-", `${id}:/in`, { input: BYTES })).toEqual(DONE);
  expect(files.get("/in")).toEqual({ bytes: BYTES, mode: undefined });
  const stdout = new SeenOutput();
  expect((await cp(`${id}:/in`, "-", { stdout })).code).toBe(0);
  expect(stdout.bytes().equals(BYTES)).toBe(true);
});

test("half a download leaves no file, and what was there as it was", async () => {
  files.set("/big", { bytes: BYTES, mode: undefined });
  breaksAt = 100_000;
  const target = join(folder, "big");
  const broken = await cp(`${id}:/big`, target);
  expect([broken.code, broken.stderr]).toEqual([1, expect.stringMatching(/^error: the connection to .* broke: /)]);
  expect(await readdir(folder)).toEqual([]);
  await writeFile(target, "old");
  expect((await cp(`${id}:/big`, target)).code).toBe(1);
  expect([await readdir(folder), await readFile(target, "utf8")]).toEqual([["big"], "old"]);
});

test("says what cannot be copied", async () => {
  const ends = async (...args: Parameters<typeof cp>) => {
    const { code, stderr } = await cp(...args);
    return [code, stderr];
  };
  const usage = "error: one of the two is a file here, the other <id>:<path> in a sandbox\n";
  expect(await ends("a", "b")).toEqual([2, usage]);
  expect(await ends(`${id}:/a`, `${id}:/b`)).toEqual([2, usage]);
  expect(await ends("-", `${id}:/folder/`)).toEqual([2, expect.stringContaining("needs a name")]);
  expect(await ends(join(folder, "none"), `${id}:/a`)).toEqual([1, expect.stringMatching(/cannot be read: ENOENT/)]);
  expect(await ends(folder, `${id}:/a`)).toEqual([1, `error: ${folder} is no file\n`]);
  expect(await ends(`${id}:/none`, join(folder, "x"))).toEqual([1, 'error: "/none": there is no such file\n']);
  const unknown = "01977f3e-7c3a-7d2e-9d6f-0d5b0f4b6a11";
  await writeFile(join(folder, "f"), BYTES);
  expect(await ends(join(folder, "f"), `${unknown}:/a`)).toEqual([1, `error: there is no sandbox ${unknown}\n`]);
  expect(await ends(`${id}:/none`, join(folder, "no", "x"))).toEqual([1, expect.stringContaining("no such file")]);
  const json = await runHere(["sandbox", "cp", "a", `${id}:/a`, "--json", "--server", api.url]);
  expect(json.code).toBe(2);
});
