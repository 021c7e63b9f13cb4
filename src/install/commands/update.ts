import { withExamples } from "../../client/examples.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { distribution } from "../../core/distribution.ts";
import { RELEASE_KEYS } from "../release/keys.ts";
import { hasServices, serviceManager } from "../service/service.ts";
import { runUpdate, type UpdateFlags } from "../update/update-command.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("update")
    .description(
      "Replace this program by its newest release, and restart its service. The release is checked and tried first, and " +
        "the version before comes back if the service does not come up. With --check the exit code is 10 where there is " +
        "a newer release.",
    )
    .option("--check", "only tell whether there is a newer release")
    .option("--version <tag>", "install this version; an older one needs --force")
    .option("--force", "install what is older, or installed already")
    .option("--no-restart", "leave the service as it runs")
    .option("--json", "print JSON");
  withExamples(command, ["engine update", "engine update --check", "engine update --version 0.2.0 --force"]).action(
    context.action((flags: UpdateFlags) =>
      runUpdate(context, flags, {
        distribution: distribution(),
        execPath: process.execPath,
        publicKeys: RELEASE_KEYS,
        manager: hasServices() ? serviceManager(context) : undefined,
      }),
    ),
  );
};
