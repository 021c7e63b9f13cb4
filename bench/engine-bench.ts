import { growth } from "./growth/command.ts";
import { full } from "./suite/commands/full.ts";
import { listOf } from "./suite/commands/list.ts";
import { runOf } from "./suite/commands/run.ts";
import { show } from "./suite/commands/show.ts";
import { runProcess } from "./suite/program.ts";
import type { Registry } from "./suite/named.ts";

/**
 * What `engine bench` starts: of the suite that which needs nothing but the program, so that it can be run where the
 * program is to run. Peers, clusters and other revisions need a checkout.
 */
const REGISTRY: Registry = {
  "kernel/first-body": () => import("./kernel/first-body.ts"),
  "kernel/otlp": () => import("./kernel/otlp.ts"),
  "load/bodies": () => import("./load/bodies.ts"),
  "load/filedrop": () => import("./load/filedrop.ts"),
  "load/profile": () => import("./load/profile.ts"),
  "query/fixed": () => import("./query/fixed.ts"),
};

await runProcess({
  name: "engine bench",
  commands: { list: listOf(REGISTRY), run: runOf(REGISTRY), full, growth, show },
});
