/**
 * Compiles the scanner's WebAssembly module from its source, `src/format/ndjson/wasm/*.as`, which is AssemblyScript, and
 * writes it as a module of TypeScript beside it. What it wrote is checked in, so that nobody needs a compiler to run the
 * program; a test says when it is old.
 *
 *     npm run wasm
 */
import { writeFileSync } from "node:fs";
import { compileRows, MODULE_FILE, moduleText } from "./wasm/compile.ts";

const binary = await compileRows();
writeFileSync(MODULE_FILE, moduleText(binary));
console.log(`${binary.length} bytes`);
