import type { Capability } from "../../feature/capability.ts";
import { hasLiveNode } from "./room.ts";

export const SANDBOX_CAPABILITIES: readonly Capability[] = [
  {
    name: "sandboxes",
    title: "Sandboxes",
    whyOff: async ({ records, whyNoSandboxes }) => {
      if (await hasLiveNode(records)) return undefined;
      return `No node runs sandboxes: ${whyNoSandboxes() ?? "none is connected"}.`;
    },
  },
];
