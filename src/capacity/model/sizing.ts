import type { Role } from "./demand.ts";

/** What one role needs at the peak. */
export type RoleNeed = {
  role: Role;
  /** Busy cores. */
  cores: number;
  /** Busy first threads; a process has one. */
  main: number;
  /** One node at a time does the work; others wait to take over. */
  isLed: boolean;
  /** At least so many, to begin with. */
  leastNodes: number;
  leastCores: number;
};

export type Loss = {
  survive: "nothing" | "node" | "zone";
  zones: number;
  /** Busy share of the cores at the peak, with every node there. */
  maxUtilization: number;
  /** Cores of one node at most. */
  maxCores: number;
};

export type RoleSize = {
  nodes: number;
  cores: number;
  /** Busy share of the cores at the peak: with every node, and after the loss. */
  peak: number;
  afterLoss: number;
};

/** After a loss nodes may be as busy as this, and first threads at any time. */
const MAX_AFTER_LOSS = 0.9;
export const MAX_MAIN = 0.85;
const MAX_NODES = 64;
const CORES = [1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192];

/** The fewest cores in all, then the fewest nodes. Undefined where no number of nodes within bounds is enough. */
export function sizeOf(need: RoleNeed, loss: Loss): RoleSize | undefined {
  let best: RoleSize | undefined;
  const most = need.isLed ? need.leastNodes : MAX_NODES;
  for (let nodes = need.leastNodes; nodes <= most; nodes++) {
    const left = need.isLed ? 1 : nodes - lostOf(nodes, loss);
    const working = need.isLed ? 1 : nodes;
    if (left < 1 || need.main / left > MAX_MAIN) continue;
    for (const cores of CORES) {
      if (cores < need.leastCores || cores > loss.maxCores) continue;
      const peak = need.cores / (working * cores);
      const afterLoss = need.cores / (left * cores);
      if (peak > loss.maxUtilization || afterLoss > MAX_AFTER_LOSS) continue;
      if (best === undefined || nodes * cores < best.nodes * best.cores) best = { nodes, cores, peak, afterLoss };
      break;
    }
  }
  return best;
}

/** Nodes that are gone after the loss, of nodes spread over the zones. */
export function lostOf(nodes: number, { survive, zones }: Pick<Loss, "survive" | "zones">): number {
  if (survive === "nothing") return 0;
  return survive === "node" ? 1 : Math.ceil(nodes / zones);
}
