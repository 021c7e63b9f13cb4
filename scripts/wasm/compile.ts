import { execFile } from "node:child_process";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Sources are not named `.ts`: their syntax and their types are not those of TypeScript. */
const SOURCES = fileURLToPath(new URL("../../src/format/ndjson/wasm/", import.meta.url));
export const MODULE_FILE = join(SOURCES, "module.ts");

/**
 * A program, not a library of this one: the compiler's declarations are of its language's globals, and would change what
 * `Array.at` and others are in all of this project.
 */
const COMPILER = fileURLToPath(new URL("../../node_modules/assemblyscript/bin/asc.js", import.meta.url));

/** Static data starts behind the first KiB, so that address 0 is nobody's; see `layout.as` for what follows. */
const OPTIONS = "--enable simd -O3 --converge --runtime stub --importMemory --noAssert --memoryBase 1024".split(" ");

/** The module that the sources give. Rejects with what the compiler says of them. */
export async function compileRows(): Promise<Uint8Array> {
  const folder = await mkdtemp(join(tmpdir(), "engine-wasm-"));
  try {
    for (const name of await readdir(SOURCES)) {
      if (name.endsWith(".as")) await cp(join(SOURCES, name), join(folder, `${basename(name, ".as")}.ts`));
    }
    const args = [COMPILER, "rows.ts", "--outFile", "rows.wasm", ...OPTIONS];
    await promisify(execFile)(process.execPath, args, { cwd: folder });
    return await readFile(join(folder, "rows.wasm"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

const LINE_CHARS = 96;

/** The module as TypeScript has it. */
export function moduleText(binary: Uint8Array): string {
  const text = Buffer.from(binary).toString("base64");
  const lines = text.match(new RegExp(`.{1,${LINE_CHARS}}`, "g")) ?? [];
  return [
    "/** Written by `npm run wasm` from the `.as` files here: the module of `rows.as`, in base64. */",
    "export const ROWS_MODULE =",
    `${lines.map((line) => `  "${line}"`).join(" +\n")};`,
    "",
  ].join("\n");
}
