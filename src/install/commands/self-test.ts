import type { RegisterCommand } from "../../client/command.ts";
import { runSelfTest } from "../update/self-test.ts";

/** For `engine update`, which asks the next version whether it works here. */
export const register: RegisterCommand = (program, context) => {
  program
    .command("self-test", { hidden: true })
    .description("Serve in a folder of its own, ingest a row and query it.")
    .action(context.action(() => runSelfTest(context)));
};
