import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ManualClock } from "../../../core/clock.ts";
import { EngineError } from "../../../core/errors.ts";
import { seededRandom } from "../../../core/random.ts";
import { HeldFiles, HeldSandbox } from "../leased-files.ts";
import { SandboxSecrets } from "./secrets.ts";

const ID = "01920000-0000-7000-8000-000000000001";
let folder: string;
let clock: ManualClock;
let held: HeldSandbox;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "engine-secrets-"));
  clock = new ManualClock();
  held = new HeldSandbox(new HeldFiles(folder), { sandboxId: ID, keepsDisk: false, isProvisioned: false });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function secretsOf(credential: (id: string) => Promise<unknown>, of = held): SandboxSecrets {
  return new SandboxSecrets({ job: { credential }, held: of, clock, random: seededRandom(1) });
}
const none = () => Promise.reject(new Error("not asked for"));

describe("the certificate authority of a sandbox", () => {
  it("is made once, kept where nobody else reads it, and found by the next process", async () => {
    const secrets = secretsOf(none);
    const [one, two] = await Promise.all([secrets.authority(), secrets.authority()]);
    expect(two).toBe(one);
    const [file = ""] = await readdir(folder);
    expect((await stat(join(folder, file))).mode & 0o777).toBe(0o600);
    const files = new HeldFiles(folder);
    const [next] = await files.readAll();
    if (next === undefined) throw new Error("nothing was kept");
    const again = await secretsOf(none, new HeldSandbox(files, next)).authority();
    expect(again.export()).toEqual(one.export());
  });

  it("is not made where nobody asks for it", () => {
    secretsOf(none);
    expect(held.now.authority).toBeUndefined();
  });
});

describe("values", () => {
  it("come from the job of the sandbox, each time anew", async () => {
    let count = 0;
    const secrets = secretsOf((id) => Promise.resolve({ id, count: ++count }));
    expect(await secrets.reveal("c")).toEqual({ id: "c", count: 1 });
    expect(await secrets.reveal("c")).toEqual({ id: "c", count: 2 });
  });

  it("are not waited for, for long", async () => {
    const refused = secretsOf(() => Promise.reject(new EngineError("not_found", "gone"))).reveal("c");
    await expect(refused).rejects.toMatchObject({ code: "not_found" });
    const late = secretsOf(() => new Promise(() => undefined)).reveal("c");
    const outcome = late.catch((error: unknown) => error);
    clock.advance(15_000);
    expect(await outcome).toMatchObject({ code: "unavailable" });
  });
});
