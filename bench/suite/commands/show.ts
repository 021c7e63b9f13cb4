import { printResult } from "../print.ts";
import { readResult } from "../result.ts";
import { UsageError, type Command } from "./command.ts";

export const show: Command = {
  usage: "FILE",
  doc: "prints the result of an earlier run",
  run: async ([path]) => {
    if (path === undefined) throw new UsageError("show takes a file");
    printResult(await readResult(path));
    return 0;
  },
};
