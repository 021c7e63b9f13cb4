import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { CliContext } from "../../client/context.ts";
import { describeError, exitCodeOf } from "../../client/failure.ts";
import { systemClock, type Clock } from "../../core/clock.ts";
import type { Distribution } from "../../core/distribution.ts";
import { systemRandom } from "../../core/random.ts";
import { headerBlocks, padding, TAR_END, type TarHeader } from "../../io/tar/tar-format.ts";
import { manifestText, type Release } from "../release/manifest.ts";
import { sign } from "../release/minisign.ts";
import { exampleRelease } from "../release/release.test-kit.ts";
import { makeSigningKey } from "../release/signing-key.test-kit.ts";
import type { ServiceManager } from "../service/definition.ts";
import { UPDATE_OPTIONS } from "./options.ts";
import { runUpdate, type UpdateFlags } from "./update-command.ts";

/** A program as `sh` has it, that says its version and passes its test, or does not. */
export function fakeProgram(version: string, selfTest = "exit 0"): string {
  return `#!/bin/sh\ncase "$1" in\nversion) echo '{"version":"${version}"}' ;;\nself-test) ${selfTest} ;;\nesac\n`;
}

/** An entry of an archive. */
export function tarEntry(path: string, text: string, more: Partial<TarHeader> = {}): Buffer {
  const sizeBytes = more.type === undefined || more.type === "file" ? Buffer.byteLength(text) : 0;
  const defaults = { type: "file", mode: 0o755, uid: 0, gid: 0, modifiedSecs: 0, target: "" } as const;
  const header = headerBlocks({ ...defaults, path, sizeBytes, ...more });
  return sizeBytes === 0 ? header : Buffer.concat([header, Buffer.from(text), padding(sizeBytes)]);
}

export function tarGz(...entries: readonly Buffer[]): Buffer {
  return gzipSync(Buffer.concat([...entries, TAR_END]));
}

/** An archive with a fake program, in one folder as releases have them. */
export function fakeArchive(version: string): Buffer {
  const root = `engine-${version}`;
  return tarGz(
    tarEntry(root, "", { type: "folder" }),
    tarEntry(`${root}/bin/engine`, fakeProgram(version)),
    tarEntry(`${root}/lib/engine/dist/distribution.json`, '{"kind":"archive"}', { mode: 0o644 }),
  );
}

type Change = { release?: Partial<Release>; program?: Buffer | string; after?: (folder: string) => void };

/** Releases in a folder, signed by a key of their own, and a program that may be updated from there. */
export class UpdateWorld {
  readonly folder = mkdtempSync(join(tmpdir(), "engine-update-"));
  readonly releases = join(this.folder, "releases");
  readonly home = join(this.folder, "home");
  readonly key = makeSigningKey();
  readonly kind: "single-file" | "archive";
  url: string = pathToFileURL(this.releases).href;
  clock: Clock = systemClock;
  manager: ServiceManager | undefined;
  env: Readonly<Record<string, string>> = {};

  constructor(kind: "single-file" | "archive" = "single-file") {
    this.kind = kind;
    mkdirSync(join(this.folder, "opt", "bin"), { recursive: true });
    mkdirSync(this.home);
    this.setProgram("0.1.0");
  }

  /** What the user starts. */
  get program(): string {
    return join(this.folder, "opt", "bin", "engine");
  }

  get distribution(): Distribution {
    return { kind: this.kind, program: this.program, folder: join(this.folder, "opt") };
  }

  setProgram(version: string): void {
    writeFileSync(this.program, fakeProgram(version));
    chmodSync(this.program, 0o755);
  }

  /** Publishes a version, as the newest; `after` may spoil what was written. */
  publish(version: string, { release, program, after }: Change = {}): void {
    const bytes = Buffer.from(program ?? (this.kind === "archive" ? fakeArchive(version) : fakeProgram(version)));
    const name = `engine-${version}-${process.platform}-${process.arch}${this.kind === "archive" ? ".tar.gz" : ""}`;
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const { platform: os, arch } = process as { platform: "linux" | "darwin"; arch: "x64" | "arm64" };
    const artefact = { name, kind: this.kind, os, arch, size_bytes: bytes.length, sha256 } as const;
    const text = manifestText({ ...exampleRelease(), version, artefacts: [artefact], ...release });
    const folder = join(this.releases, version);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), bytes);
    for (const place of [folder, this.releases]) this.writeManifest(place, text);
    after?.(folder);
  }

  writeManifest(folder: string, text: string, secretKeyText = this.key.secretKeyText): void {
    writeFileSync(join(folder, "release.json"), text);
    writeFileSync(join(folder, "release.json.minisig"), sign(Buffer.from(text), secretKeyText, "engine"));
  }

  /** Runs `engine update` of a program of version 0.1.0. */
  async update(
    flags: Partial<UpdateFlags> = {},
    version = "0.1.0",
  ): Promise<{ code: number; out: string; error: string }> {
    const { context, out, error } = this.context(version);
    const { distribution, manager } = this;
    const setting = { distribution, manager, execPath: process.execPath, publicKeys: [this.key.publicKey] };
    try {
      const code = await runUpdate(context, { restart: true, ...flags }, setting);
      return { code, out: out(), error: error() };
    } catch (thrown) {
      return { code: exitCodeOf(thrown), out: out(), error: describeError(thrown).message };
    }
  }

  context(version = "0.1.0", isTTY = false) {
    const [stdout, stderr] = [new PassThrough(), Object.assign(new PassThrough(), { isTTY })];
    const texts = [stdout, stderr].map((stream) => {
      const pieces: Buffer[] = [];
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      return () => Buffer.concat(pieces).toString();
    });
    const context = new CliContext({
      serve: () => Promise.resolve(0),
      rows: () => Promise.resolve(UPDATE_OPTIONS),
      migrations: () => Promise.resolve([]),
      version,
      env: {
        PATH: process.env["PATH"],
        HOME: this.folder,
        ENGINE_HOME: this.home,
        ENGINE_UPDATE_URL: this.url,
        ...this.env,
      },
      stdin: new PassThrough(),
      stdout,
      stderr,
      clock: this.clock,
      random: systemRandom,
    });
    return { context, out: texts[0] as () => string, error: texts[1] as () => string };
  }

  remembered(): unknown {
    return JSON.parse(readFileSync(join(this.home, "update.json"), "utf8"));
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
