import { chmod, cp, readFile, rm, stat } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { fileURLToPath } from "node:url";
import { type Plugin, build } from "esbuild";
import { VERSION } from "../src/core/version.ts";

/**
 * `npm run build`: the program as one file, `dist/engine.js`, which starts several times faster than the sources and
 * is the same file for the main process, its worker threads and its child processes.
 *
 * Left outside are packages that bring a binary or files of their own. In one file every static import of an outside
 * package moves to the top and is loaded at each start, `engine --version` included; so these are turned into
 * `require` calls where they are used, which run when the module around them first does.
 */
const OUTSIDE =
  /^(@duckdb\/node-(api|bindings).*|@uwsjs\/.*|uWebSockets\.js|@node-rs\/argon2|piscina|postgres|@aws-sdk\/client-s3)$/;

const requireOutside: Plugin = {
  name: "require-outside",
  setup(builder) {
    builder.onResolve({ filter: OUTSIDE }, ({ path, kind, namespace }) =>
      // Our own `require` below is where it ends; a `require` of the sources is one already.
      kind === "require-call" || namespace === "outside" ? { path, external: true } : { path, namespace: "outside" },
    );
    builder.onLoad({ filter: /.*/, namespace: "outside" }, ({ path }) => ({
      contents: requireOrExplain(path),
      loader: "js",
    }));
  },
};

/** One that is not installed ends what needs it, in a sentence that says what to do. */
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
const output = `${repository}dist/engine.js`;

await rm(`${repository}dist`, { recursive: true, force: true });
await build({
  absWorkingDir: repository,
  entryPoints: ["roles/main.ts"],
  outfile: output,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node22.19",
  // Names stay, for stack traces; the source map serves debuggers.
  minifySyntax: true,
  minifyWhitespace: true,
  sourcemap: "linked",
  sourcesContent: false,
  legalComments: "none",
  logLevel: "warning",
  define: { ENGINE_BUNDLED: "true", ENGINE_VERSION: JSON.stringify(VERSION) },
  banner: {
    js: [
      "#!/usr/bin/env node",
      'import{createRequire as __createRequire}from"node:module";',
      "const require=__createRequire(import.meta.url);",
    ].join("\n"),
  },
  plugins: [requireOutside],
});
await chmod(output, 0o755);
// Programs of another language, which are found beside the one file as they are beside their sources.
for (const [from, to] of [
  ["query/scan/confinement/confine.pl", "confine.pl"],
  ["sandbox/node/files/helper.pl", "helper.pl"],
  ["sandbox/runtime/mounts.pl", "mounts.pl"],
  ["sandbox/runtime/supervisor", "supervisor"],
] as const) {
  await cp(`${repository}src/${from}`, `${repository}dist/${to}`, { recursive: true });
}

const text = await readFile(output, "utf8");
const imports = text.matchAll(/(?<=^|;)import[^;]*?from"(?<name>[^"]+)"/g);
const names = Array.from(imports, ({ groups }) => groups?.["name"] ?? "");
const outside = [...new Set(names.filter((name) => !isBuiltin(name)))];
if (outside.length > 0) throw new Error(`these would be loaded at every start: ${outside.join(", ")}`);
console.log(`dist/engine.js ${VERSION}: ${((await stat(output)).size / 1e6).toFixed(2)} MB`);
