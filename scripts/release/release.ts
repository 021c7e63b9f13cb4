import { chmod, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { messageOf } from "../../src/core/errors.ts";
import { VERSION } from "../../src/core/version.ts";
import { componentsOf } from "./components.ts";
import { imageMaker } from "./image.ts";
import type { MadeFile, Maker, ReleaseContext } from "./maker.ts";
import { MAKERS } from "./makers.ts";
import { npmPackageFiles } from "./npm-package.ts";
import { programFiles, writeFolder } from "./program-files.ts";
import { sbomText } from "./sbom.ts";
import { writeSignedManifest } from "./signed-manifest.ts";
import { TARGETS, nameOf, type Target } from "./targets.ts";
import { commitTimeSecs, runTool } from "./tools.ts";

/**
 * `npm run release`: everything that is published of a version, in `dist/release/<version>/` (docs/releases.md). What is
 * made depends on the commit and on the Node that makes it, not on the folder, the time or the umask.
 */
const HELP = `npm run release -- [options]

  --only NAME          make only this: ${MAKERS.map(({ name }) => name).join(", ")} (may be given several times)
  --target OS-ARCH     make archives and single files only for this: ${TARGETS.map(nameOf).join(", ")}
  --image-base A=TAR   the root file system that the image of an architecture (x64, arm64) is based on; without one no
                       image is made
  --scope @NAME        scope of the npm package's name (ENGINE_RELEASE_SCOPE)
  --secret-key FILE    minisign's secret key, without a password, to sign with (ENGINE_RELEASE_SECRET_KEY)
  --expires-days N     until when the release may be installed; 365 unless given
  --out FOLDER         instead of dist/release/<version>
`;

const SCOPE = /^@[a-z0-9][a-z0-9._-]{0,99}$/;
const EXPIRES_DAYS = 365;
const MAX_EXPIRES_DAYS = 3_650;

const repository = fileURLToPath(new URL("../..", import.meta.url));
process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2));
    if (options === undefined) {
      console.log(HELP);
      return 0;
    }
    await release(options);
    return 0;
  } catch (error) {
    console.error(`error: ${messageOf(error)}`);
    return 1;
  }
}

type ReleaseOptions = {
  makers: readonly Maker[];
  targets: readonly string[];
  imageBases: ReadonlyMap<Target["arch"], string>;
  packageName: string;
  secretKey: string | undefined;
  expiresDays: number;
  out: string;
};

/** Undefined where help is asked for. @throws Error */
function readOptions(args: string[]): ReleaseOptions | undefined {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: "string", multiple: true },
      target: { type: "string", multiple: true },
      "image-base": { type: "string", multiple: true, default: [] },
      scope: { type: "string" },
      "secret-key": { type: "string" },
      "expires-days": { type: "string", default: String(EXPIRES_DAYS) },
      out: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (values.help === true) return undefined;
  const makers = MAKERS.map(({ name }) => name);
  const imageBases = imageBasesOf(values["image-base"]);
  const withoutBase = makers.filter((name) => name !== imageMaker.name || imageBases.size > 0);
  const { only = withoutBase, target: targets = TARGETS.map(nameOf), out } = values;
  checkNames("--only", only, makers);
  checkNames("--target", targets, TARGETS.map(nameOf));
  const scope = values.scope ?? process.env["ENGINE_RELEASE_SCOPE"] ?? "";
  if (scope !== "" && !SCOPE.test(scope)) throw new Error(`--scope is ${scope}; expected one of npm, such as @acme`);
  const expiresDays = Number(values["expires-days"]);
  if (!Number.isInteger(expiresDays) || expiresDays < 1 || expiresDays > MAX_EXPIRES_DAYS) {
    throw new Error(`--expires-days is ${values["expires-days"]}; expected 1 to ${MAX_EXPIRES_DAYS}`);
  }
  return {
    makers: MAKERS.filter(({ name }) => only.includes(name)),
    targets,
    imageBases,
    packageName: scope === "" ? "engine" : `${scope}/engine`,
    secretKey: values["secret-key"] ?? (process.env["ENGINE_RELEASE_SECRET_KEY"] || undefined),
    expiresDays,
    out: resolve(out ?? join(repository, "dist/release", VERSION)),
  };
}

function checkNames(flag: string, given: readonly string[], known: readonly string[]): void {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`${flag} is ${unknown}; expected one of ${known.join(", ")}`);
}

/** @throws Error for anything but `x64=TAR` and `arm64=TAR` */
function imageBasesOf(pairs: readonly string[]): Map<Target["arch"], string> {
  const given = pairs.map((pair) => {
    const [arch, path] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
    if ((arch !== "x64" && arch !== "arm64") || path === "") {
      throw new Error(`--image-base is ${pair}; expected x64=TAR or arm64=TAR`);
    }
    return [arch, resolve(path)] as const;
  });
  // The order of the options is not to be seen in the image.
  return new Map(given.toSorted(([a], [b]) => (a < b ? 1 : -1)));
}

async function release(options: ReleaseOptions): Promise<void> {
  const { out, makers, expiresDays, secretKey } = options;
  // Before the bundle is made, which takes longer than to be told of a wrong file.
  const secretKeyText = secretKey === undefined ? undefined : await readFile(secretKey, "utf8");
  const timeSecs = await commitTimeSecs(repository);
  await runTool(process.execPath, [join(repository, "scripts/build.ts")]);
  await mkdir(join(out, ".."), { recursive: true });
  const staged = await mkdtemp(`${out}.`);
  const work = await mkdtemp(join(tmpdir(), "engine-release-"));
  try {
    const context = contextOf(options, { timeSecs, out: staged, work });
    const made: MadeFile[] = [];
    for (const maker of makers) {
      console.log(`--- ${maker.name}`);
      made.push(...(await maker.make(context)));
    }
    const { lines, isSigned } = await writeSignedManifest(staged, { made, timeSecs, expiresDays, secretKeyText });
    await chmod(staged, 0o755);
    await rm(out, { recursive: true, force: true });
    await rename(staged, out);
    console.log(lines.join("\n"));
    if (!isSigned) console.log("release.json is not signed, and nothing will install it: give --secret-key FILE");
    console.log(out);
  } finally {
    await rm(staged, { recursive: true, force: true });
    await rm(work, { recursive: true, force: true });
  }
}

type Run = { timeSecs: number; out: string; work: string };

function contextOf({ packageName, targets, imageBases }: ReleaseOptions, { timeSecs, out, work }: Run): ReleaseContext {
  const cache = join(repository, ".cache/release");
  const npmFiles = once(() => npmPackageFiles(repository, packageName));
  const filesOf = new Map(
    TARGETS.map((target) => [
      nameOf(target),
      once(async () => programFiles({ repository, cache, work, npmFiles: await npmFiles() }, target)),
    ]),
  );
  const programFilesFor: ReleaseContext["programFiles"] = (target) => filesOf.get(nameOf(target))?.() ?? noTarget();
  return {
    repository,
    version: VERSION,
    timeSecs,
    out,
    cache,
    work,
    packageName,
    targets,
    imageBases,
    npmFiles,
    programFiles: programFilesFor,
    async programFolder(target) {
      const folder = await mkdtemp(join(work, "program-"));
      await writeFolder(folder, await programFilesFor(target));
      return folder;
    },
    async sbom() {
      return sbomText({ version: VERSION, timeSecs, components: await componentsOf(repository) });
    },
  };
}

function noTarget(): never {
  throw new Error("there is no such platform");
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
