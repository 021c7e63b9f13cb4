import { printList } from "../print.ts";
import { benchmarksNamed, type Registry } from "../named.ts";
import type { Command } from "./command.ts";

export function listOf(registry: Registry): Command {
  return {
    usage: "[NAME]",
    doc: "what there is, with questions, options and measures",
    run: async ([name]) => {
      printList(await benchmarksNamed(name, registry));
      return 0;
    },
  };
}
