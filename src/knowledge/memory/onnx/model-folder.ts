import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** Where a model is, and the packages that run it. Goes to threads as it is. */
export type ModelFiles = { model: string; tokenizer: string; folder: string; runtime: string; tokenizers: string };

/**
 * Finds a model in its folder. The runtime downloads while it is installed, so it is no dependency of this program: who
 * wants it installs it beside the model, or beside the program. `variable` names the folder for the operator.
 */
export function findModel(folder: string, variable: string): ModelFiles | { off: string } {
  const model = ["model.onnx", "onnx/model.onnx"].map((name) => join(folder, name)).find((path) => existsSync(path));
  const tokenizer = join(folder, "tokenizer.json");
  if (model === undefined || !existsSync(tokenizer)) {
    return { off: `${folder} has no model.onnx with a tokenizer.json: check ${variable}` };
  }
  const runtime = resolved(RUNTIME, folder);
  const tokenizers = resolved(TOKENIZERS, folder);
  if (runtime === undefined || tokenizers === undefined) {
    return { off: `${RUNTIME} and ${TOKENIZERS} are not installed: install them in ${folder}` };
  }
  return { model, tokenizer, folder, runtime, tokenizers };
}

const RUNTIME = "onnxruntime-node";
const TOKENIZERS = "@huggingface/tokenizers";

function resolved(name: string, folder: string): string | undefined {
  for (const from of [pathToFileURL(join(folder, "package.json")), import.meta.url]) {
    try {
      return createRequire(from).resolve(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
}
