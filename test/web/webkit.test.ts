import { describePagesIn } from "./smoke.test-kit.ts";
import { startWebKit } from "./webkit.test-kit.ts";

describePagesIn("WebKit", "webkit", startWebKit);
