import { refusedLeavesNothing } from "./refused.test-kit.ts";

refusedLeavesNothing("SQLite", async () => undefined);
