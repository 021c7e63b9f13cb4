import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type BuildOptions, type Metafile, type Plugin, build } from "esbuild";
import { VERSION } from "../src/core/version.ts";
import { MANIFEST, WEB_MANIFEST, writeManifest } from "./bundle-manifest.ts";
import { releaseValues } from "./release-values.ts";
import { buildWeb, packageOf } from "./web/build-web.ts";

/**
 * `npm run build`: the program as one file, `dist/engine.js`, which starts several times faster than the sources and
 * can also be the program's worker threads and child processes; and the pages for browsers, `dist/web/`. Beside it each of these has a small file of its own, so
 * that none has to load the whole program (see `src/core/isolate.ts`).
 *
 * Packages that bring a binary or files of their own stay outside. In one file every static import of an outside
 * package or of a module of Node moves to the top and is loaded at each start, `engine --version` included; so these
 * become `require` calls, which run when the module around them first does.
 */
const OUTSIDE =
  /^(@duckdb\/node-(api|bindings).*|@uwsjs\/.*|uWebSockets\.js|@node-rs\/argon2|piscina|postgres|@aws-sdk\/client-(s3|sts))$/;

/**
 * Of those, packages that become a file of their own beside the bundle: of several hundred files that take 22 MB, which
 * are loaded only with an object store, 2 MB remain. The second is loaded only by servers that give sessions to readers.
 */
const OWN_FILES: Readonly<Record<string, string>> = {
  "@aws-sdk/client-s3": "client-s3.cjs",
  "@aws-sdk/client-sts": "client-sts.cjs",
};

/** The program, and what it starts on threads and in child processes. */
const ENTRIES = [
  "roles/main.ts",
  "roles/plugin-hook.ts",
  "src/catalog/sqlite/catalog-thread.ts",
  "src/compaction/merge-child.ts",
  "src/io/rows/csv-child.ts",
  "src/io/rows/parquet-child.ts",
  "src/ingest/seal-thread.ts",
  "src/io/confinement/probe-child.ts",
  "src/knowledge/memory/recall/recall-thread.ts",
  "src/knowledge/memory/rerank/rerank-thread.ts",
  "src/query/scan/query-child.ts",
  "src/query/translator/translator-child.ts",
];

/** What `engine bench` starts: it measures the program, and has little of it inside. */
const BENCH_ENTRIES = [
  "bench/engine-bench.ts",
  "bench/load/drive/drive-child.ts",
  "bench/load/settle-child.ts",
  "bench/support/generator-child.ts",
];

/** Programs of another language, which are found beside the bundle as they are beside their sources. */
const PROGRAMS = [
  "io/confinement/confine.pl",
  "sandbox/node/files/helper.pl",
  "sandbox/runtime/images/overlay-marks.pl",
  "sandbox/runtime/mounts.pl",
  "sandbox/runtime/supervisor",
];

/**
 * What benchmarks of a release go without: clusters, of which they say that they need a checkout, and of the features all
 * but the tables of their catalogs, which nothing there asks for.
 */
const leftOutOfBench: Plugin = {
  name: "left-out-of-bench",
  setup(builder) {
    builder.onResolve({ filter: /\.ts$/ }, ({ path, kind, importer }) => {
      if (kind !== "dynamic-import") return undefined;
      const isOfFeature = /\/features?\.ts$/.test(importer) && !/\/(tables|migrations)\.ts$/.test(path);
      return isOfFeature || path.endsWith("/bench-cluster.ts") ? { path, external: true } : undefined;
    });
  },
};

const requireOutside: Plugin = {
  name: "require-outside",
  setup(builder) {
    builder.onResolve({ filter: /^[^./]/ }, ({ path, kind, namespace }) => {
      if (!OUTSIDE.test(path) && !isBuiltin(path)) return undefined;
      // Our own `require` below is where it ends; a `require` of the sources is one already.
      return kind === "require-call" || namespace === "outside"
        ? { path, external: true }
        : { path, namespace: "outside" };
    });
    builder.onResolve({ filter: /^\.\//, namespace: "outside" }, ({ path }) => ({ path, external: true }));
    builder.onLoad({ filter: /.*/, namespace: "outside" }, ({ path }) => ({
      contents: contentsFor(path),
      loader: "js",
    }));
  },
};

function contentsFor(path: string): string {
  const own = OWN_FILES[path];
  if (own !== undefined) return `module.exports = require(${JSON.stringify(`./${own}`)});`;
  return isBuiltin(path) ? `module.exports = require(${JSON.stringify(path)});` : requireOrExplain(path);
}

/** A missing package ends what needs it, in a sentence that says what to do. */
function requireOrExplain(path: string): string {
  const name = JSON.stringify(path);
  const problem = `the package ${path} is not installed: install what package.json lists beside this program (npm install --omit=dev)`;
  return (
    `try { module.exports = require(${name}); } catch (error) {` +
    ` if (error.code === "MODULE_NOT_FOUND" && error.message.includes("'" + ${name} + "'")) error.message = ${JSON.stringify(problem)};` +
    ` throw error; }`
  );
}

const repository = fileURLToPath(new URL("..", import.meta.url));
const dist = join(repository, "dist");

/** Builds into `folder`. Returns the files it was made of, and those of the pages for browsers. */
async function bundle(folder: string): Promise<{ program: string[]; web: readonly string[] }> {
  const program = await bundleEntries(folder, ENTRIES, { plugins: [requireOutside], sourcemap: "linked" });
  const bench = await bundleEntries(folder, BENCH_ENTRIES, { plugins: [leftOutOfBench, requireOutside] });
  const own = await Promise.all(Object.entries(OWN_FILES).map(([name, file]) => bundlePackage(name, folder, file)));
  const web = await buildWeb(repository, join(folder, "web"));
  await writeFile(join(folder, "packages.json"), packagesText([program, bench, ...own], web.packages));
  await chmod(join(folder, "engine.js"), 0o755);
  for (const source of PROGRAMS) {
    await cp(join(repository, "src", source), join(folder, basename(source)), { recursive: true });
  }
  return { program: [...new Set([...sourcesOf(program), ...sourcesOf(bench)])], web: web.sources };
}

async function bundleEntries(
  folder: string,
  entries: readonly string[],
  options: Pick<BuildOptions, "plugins" | "sourcemap">,
): Promise<Metafile> {
  const constants = { ENGINE_VERSION: VERSION, ...releaseValues(process.env) };
  const { metafile } = await build({
    ...options,
    absWorkingDir: repository,
    entryPoints: entries.map((source) => ({ in: source, out: outputName(source) })),
    outdir: folder,
    bundle: true,
    // Names of modules are in the bundle: they must not say where a linked node_modules really is.
    preserveSymlinks: true,
    platform: "node",
    format: "esm",
    target: "node22.19",
    // Names stay, for stack traces; the source map serves debuggers.
    minifySyntax: true,
    minifyWhitespace: true,
    sourcesContent: false,
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
    define: {
      ENGINE_BUNDLED: "true",
      ...Object.fromEntries(Object.entries(constants).map(([name, value]) => [name, JSON.stringify(value)])),
    },
    banner: {
      js: [
        "#!/usr/bin/env node",
        'import{createRequire as __createRequire}from"node:module";',
        "const require=__createRequire(import.meta.url);",
      ].join("\n"),
    },
  });
  return metafile;
}

async function bundlePackage(name: string, folder: string, file: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: repository,
    stdin: { contents: `module.exports = require(${JSON.stringify(name)});`, resolveDir: repository },
    outfile: join(folder, file),
    bundle: true,
    // Names of modules are in the bundle: they must not say where a linked node_modules really is.
    preserveSymlinks: true,
    platform: "node",
    format: "cjs",
    target: "node22.19",
    minifySyntax: true,
    minifyWhitespace: true,
    charset: "ascii",
    legalComments: "none",
    logLevel: "warning",
    metafile: true,
  });
  return metafile;
}

/** `dist/packages.json`: the folders of the packages whose code is in the bundle, for `npm run release`. */
function packagesText(metafiles: readonly Metafile[], ofWeb: readonly string[]): string {
  const files = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = files.flatMap((file) => packageOf(file) ?? []);
  return `${JSON.stringify([...new Set([...folders, ...ofWeb])].toSorted())}\n`;
}

function outputName(source: string): string {
  return source === "roles/main.ts" ? "engine" : basename(source, ".ts");
}

/** Our own files among the inputs. The packages are those of the lock file, which the manifest lists too. */
function sourcesOf({ inputs }: Metafile): string[] {
  return Object.keys(inputs).filter((path) => /^(bench|src|roles)\//.test(path));
}

/** Throws when a file of the bundle would load too much at each start, or looks for a program that is not there. */
async function check(folder: string): Promise<void> {
  const files = await readdir(folder);
  for (const file of files.filter((name) => name.endsWith(".js"))) {
    const text = await readFile(join(folder, file), "utf8");
    const imports = text.matchAll(/(?<=^|;)import[^;]*?from"(?<name>[^"]+)"/gm);
    const names = new Set(Array.from(imports, ({ groups }) => groups?.["name"] ?? ""));
    names.delete("node:module");
    if (names.size > 0) throw new Error(`${file} would load these at every start: ${[...names].join(", ")}`);
    // One character outside of ASCII doubles the memory that V8 takes for the text, in every thread and process.
    const wide = /[^\0-\x7f]/.exec(text);
    if (wide !== null) throw new Error(`${file}: write ${wide[0]} as an escape, near ${near(text, wide.index)}`);
    for (const [, program = ""] of text.matchAll(/new URL\("\.\/([\w-]+)[\w/.-]*\.pl"/g)) {
      if (files.some((name) => name.split(".")[0] === program)) continue;
      throw new Error(`${file} looks for ${program}.pl beside it: add it to PROGRAMS`);
    }
  }
}

function near(text: string, index: number): string {
  return text.slice(Math.max(0, index - 60), index);
}

/** Puts the finished folder in place of the one before: whatever starts meanwhile finds the one or the other. */
async function replaceDist(made: string): Promise<void> {
  const old = `${made}.old`;
  await rename(dist, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rename(made, dist);
  // Releases that were made before (`npm run release`) stay.
  await rename(join(old, "release"), join(dist, "release")).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  await rm(old, { recursive: true, force: true });
}

const startedMs = Date.now();
await mkdir(join(repository, ".cache"), { recursive: true });
const made = await mkdtemp(join(repository, ".cache", "dist-"));
try {
  const sources = await bundle(made);
  await check(made);
  await writeManifest(repository, join(made, MANIFEST), { sources: sources.program, startedMs });
  await writeManifest(repository, join(made, WEB_MANIFEST), { sources: sources.web, startedMs });
  await chmod(made, 0o755);
  await replaceDist(made);
} finally {
  await rm(made, { recursive: true, force: true });
}
console.log(`dist/engine.js ${VERSION}: ${((await stat(join(dist, "engine.js"))).size / 1e6).toFixed(2)} MB`);
