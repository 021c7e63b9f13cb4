import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build, type Plugin } from "vite";
import { NONCE_MARK } from "../../src/web/serve/files.ts";
import { chartLanguage } from "./chart-language.ts";
import { kqlService } from "./kql-service.ts";

/** The sources of the pages, in the checkout. */
const CLIENT = "src/web/client";

/** What the pages were made of, and what of them is ours. */
export type WebBuild = { sources: readonly string[]; packages: readonly string[] };

/** Builds the pages for browsers into `folder`: the page, the files that it loads, and each of these as `.br` and `.gz`. */
export async function buildWeb(repository: string, folder: string): Promise<WebBuild> {
  const modules = new Set<string>();
  // Vite asks the environment, not its options, whether to build for production. What it builds for development holds the
  // paths of this machine; a release must not, whoever makes it.
  process.env["NODE_ENV"] = "production";
  await build({
    configFile: false,
    root: join(repository, CLIENT),
    base: "/ui/",
    logLevel: "warn",
    publicDir: false,
    html: { cspNonce: NONCE_MARK },
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    // Names of modules stay those of the checkout where its node_modules is a link.
    resolve: { preserveSymlinks: true },
    build: {
      outDir: folder,
      emptyOutDir: true,
      // What the three engines of browsers have had since 2024 (import attributes, popover, `:has`, CompressionStream).
      target: ["chrome125", "firefox128", "safari18"],
      // A style or an image in the text of a script would need a wider policy, and is no smaller compressed.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      // Of the largest part that is loaded by itself: the editor.
      chunkSizeWarningLimit: 400,
      // The worker of KQL takes most of the time, which is no news.
      rolldownOptions: { checks: { pluginTimings: false } },
    },
    plugins: [chartLanguage(), collectModules(modules)],
    // Workers are built one by one, with plugins of their own.
    worker: { plugins: () => [kqlService(), collectModules(modules)] },
  });
  await compressAll(folder);
  const paths = [...modules].map((id) =>
    relative(repository, id.replace(/[?#].*$/, ""))
      .split(sep)
      .join("/"),
  );
  return {
    sources: [...new Set(paths.filter((path) => path.startsWith("src/")))].toSorted(),
    packages: [...new Set(paths.flatMap((path) => packageOf(path) ?? []))].toSorted(),
  };
}

function collectModules(modules: Set<string>): Plugin {
  return {
    name: "collect-modules",
    buildEnd() {
      // Those of the tools themselves start with a zero byte.
      for (const id of this.getModuleIds()) if (!id.startsWith("\0")) modules.add(id);
    },
  };
}

/** The folder of the package that holds the file, if one does. */
export function packageOf(path: string): string | undefined {
  return /(node_modules\/(.*node_modules\/)?(@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
}

const brotliAll = promisify<Uint8Array, { params: Record<number, number> }, Buffer>(brotliCompress);
const gzipAll = promisify<Uint8Array, { level: number }, Buffer>(gzip);

/** Of a larger file the smallest form takes ten seconds on one core, and saves a tenth. */
const LARGE_BYTES = 1024 * 1024;

/** The smallest: it is done once, and sent often. The page itself holds a nonce, so it is sent as it is. */
async function compressAll(folder: string): Promise<void> {
  const assets = join(folder, "assets");
  await mkdir(assets, { recursive: true });
  await Promise.all(
    (await readdir(assets)).map(async (name) => {
      const file = join(assets, name);
      const bytes = await readFile(file);
      const params = {
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        [constants.BROTLI_PARAM_QUALITY]: bytes.length > LARGE_BYTES ? 9 : constants.BROTLI_MAX_QUALITY,
      };
      const [br, gz] = await Promise.all([brotliAll(bytes, { params }), gzipAll(bytes, { level: 9 })]);
      await Promise.all([writeFile(`${file}.br`, br), writeFile(`${file}.gz`, gz)]);
      // A server makes it of its smaller form: what is installed is as small as what is sent.
      if (bytes.length > LARGE_BYTES) await rm(file);
    }),
  );
}
