import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { VERSION } from "../../src/core/version.ts";
import { RELEASE_KEYS } from "../../src/install/release/keys.ts";
import { readManifest } from "../../src/install/release/manifest.ts";
import { verify } from "../../src/install/release/minisign.ts";
import { makeSigningKey } from "../../src/install/release/signing-key.test-kit.ts";
import { ingest, rowsOf } from "../support/client.ts";
import { cleanEnv, startEngine } from "../support/engine.ts";

const scratch = mkdtempSync(join(tmpdir(), "engine-release-test-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const key = makeSigningKey();
const keyFile = join(scratch, "signing.key");
const NPM = `engine-${VERSION}.tgz`;
const SBOM = `engine-${VERSION}.cdx.json`;

/** A copy of what is checked in, so that the bundle that other tests run stays. */
function copyTo(folder: string): void {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
  for (const path of listed
    .toString()
    .split("\0")
    .filter((one) => /^(bench|bin|deploy|docs|roles|scripts|src|terraform|test|[^/]+$)/.test(one))) {
    cpSync(path, join(folder, path), { recursive: true });
  }
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
}

function releaseIn(folder: string, umask: string, env: Record<string, string>) {
  const words = ["--only", "npm", "--only", "sbom", "--out", join(folder, "out"), "--secret-key", keyFile];
  const script = `umask ${umask}; exec "$0" scripts/release/release.ts "$@"`;
  const all = { ...cleanEnv(), SOURCE_DATE_EPOCH: "1790000000", ...env };
  return spawnSync("sh", ["-c", script, process.execPath, ...words], { cwd: folder, env: all, encoding: "utf8" });
}

const folders = [join(scratch, "one"), join(scratch, "deeper/and/another")];

beforeAll(() => {
  writeFileSync(keyFile, key.secretKeyText, { mode: 0o600 });
  const trusted = { ENGINE_RELEASE_KEYS: `${RELEASE_KEYS[0]} ${key.publicKey}` };
  for (const [i, folder] of folders.entries()) {
    mkdirSync(folder, { recursive: true });
    copyTo(folder);
    const made = releaseIn(folder, i === 0 ? "022" : "077", { ...trusted, TZ: i === 0 ? "UTC" : "Asia/Tokyo" });
    expect(made).toMatchObject({ status: 0, stderr: "" });
  }
}, 300_000);

function outOf(i: number, name: string): Buffer {
  return readFileSync(join(folders[i] ?? "", "out", name));
}

test.each([NPM, SBOM, "release.json", "release.json.minisig"])(
  "%s is the same from another folder, under another umask",
  (name) => {
    const digests = [0, 1].map((i) => createHash("sha256").update(outOf(i, name)).digest("hex"));
    expect(digests[0]).toBe(digests[1]);
  },
);

test("the manifest is signed, and says what was made", () => {
  const bytes = outOf(0, "release.json");
  expect(verify(bytes, outOf(0, "release.json.minisig").toString(), [key.publicKey])).toEqual({
    trustedComment: `engine ${VERSION}`,
  });
  const { released_at: releasedAt, artefacts } = readManifest(bytes);
  expect(releasedAt).toBe("2026-09-21T14:13:20.000Z");
  for (const { name, size_bytes: sizeBytes, sha256 } of artefacts) {
    const artefact = outOf(0, name);
    expect([name, sizeBytes]).toEqual([name, artefact.length]);
    expect(sha256).toBe(createHash("sha256").update(artefact).digest("hex"));
  }
  expect(artefacts.map(({ name }) => name)).toEqual([NPM, SBOM]);
});

test("a key that the program does not trust is refused, and the release before stays", () => {
  const before = outOf(0, "release.json");
  const { status, stderr } = releaseIn(folders[0] ?? "", "022", {});
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("set ENGINE_RELEASE_KEYS") });
  expect(outOf(0, "release.json").equals(before)).toBe(true);
});

describe("the npm package", () => {
  test("is installed in an empty folder, stays under 112 MB, serves and queries", async () => {
    const folder = join(scratch, "installed");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{"private":true}');
    const options = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"];
    execFileSync("npm", ["install", ...options, join(folders[0] ?? "", "out", NPM)], { cwd: folder });
    const sizeKib = Number(
      execFileSync("du", ["-sk", "node_modules"], { cwd: folder, encoding: "utf8" }).split("\t")[0],
    );
    expect(sizeKib / 1024).toBeLessThan(112);

    // An update installs what these have signed: the keys that the release was made with.
    const bundle = readFileSync(join(folder, "node_modules/engine/dist/engine.js"), "utf8");
    expect(bundle).toContain(`"${RELEASE_KEYS[0]} ${key.publicKey}"`);

    const entry = join(folder, "node_modules/engine/bin/engine.js");
    const facts = JSON.parse(
      execFileSync(process.execPath, [entry, "version", "--json"], { encoding: "utf8" }),
    ) as unknown;
    expect(facts).toMatchObject({ version: VERSION, distribution: "npm", duckdb: expect.stringMatching(/^v\d/) });
    const home = join(folder, "home");
    const engine = await startEngine({ home, entry });
    expect((await ingest(engine.url, "events", '{"body":"installed"}')).status).toBe(200);
    expect(await rowsOf(engine.url, "SELECT body FROM events")).toEqual([{ body: "installed" }]);
    const body = "events | project body";
    const headers = { "content-type": "application/x-kql" };
    const inKql = await fetch(`${engine.url}/v1/query`, { method: "POST", headers, body });
    expect(await inKql.text()).toBe('{"body":"installed"}\n');
    expect(await engine.stop()).toMatchObject({ code: 0 });
  });
});
