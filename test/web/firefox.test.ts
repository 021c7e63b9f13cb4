import { startFirefox } from "./firefox.test-kit.ts";
import { describePagesIn } from "./smoke.test-kit.ts";

describePagesIn("Firefox", "firefox", startFirefox);
