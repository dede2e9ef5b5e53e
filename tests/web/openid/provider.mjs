// A certified OpenID provider with three people; node provider.mjs PORT CLIENT_ID CLIENT_SECRET
import Provider from "oidc-provider";

const [port, clientId, clientSecret] = process.argv.slice(2);
const GROUPS = { alice: ["staff", "grader-operators"], bob: ["grader-viewers"], carol: ["staff"] };

const provider = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      // On loopback such a client may have any port.
      application_type: "native",
      redirect_uris: ["http://127.0.0.1/login/oidc/callback"],
    },
  ],
  claims: {
    openid: ["sub"],
    profile: ["preferred_username", "groups"],
    email: ["email", "email_verified"],
  },
  conformIdTokenClaims: false, // else they are to be asked for at another endpoint
  cookies: { keys: ["of the tests"] },
  pkce: { required: () => true },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({
      sub: `id-of-${sub}`,
      preferred_username: sub,
      groups: GROUPS[sub],
      email: `${sub}@example.org`,
      email_verified: true,
    }),
  }),
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
