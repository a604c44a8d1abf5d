"""The kinds of secrets that can be recognized by their form, one row each.

A kind is listed if its form leaves no doubt: a beginning that its service chose, and a
length. Secrets without a form of their own, such as most passwords, are recognized by
the words before them: see ``redaction``. Lengths are shorter than those of whole keys,
as texts may be cut.

The last column is an example, which the tests are made from. It is so obviously made
up, and written in such pieces, that no scanner takes this file for a leak.
"""

# ruff: noqa: E501 (a row is read across)

# A value without digits, such as sk-learn-contrib, is a name.
_DIGIT = r"(?=[A-Za-z_-]{0,200}[0-9])"
_UPPER = r"(?=[a-z0-9_-]{0,200}[A-Z])"

# (kind, what it begins with, an expression for the rest, an example of the rest)
KEYS = (
    ("Backstory", "bst_", r"[A-Za-z0-9_-]{20,}", "a1" * 21),
    # Language models
    ("OpenAI, Anthropic, OpenRouter", "sk-", _DIGIT + r"[A-Za-z0-9_-]{20,}", "a1" * 20),
    ("Groq", "gsk_", r"[A-Za-z0-9]{20,}", "a1" * 26),
    ("xAI", "xai-", _DIGIT + r"[A-Za-z0-9]{20,}", "a1" * 40),
    ("Perplexity", "pplx-", r"[A-Za-z0-9]{20,}", "a1" * 24),
    ("Replicate", "r8_", r"[A-Za-z0-9]{20,}", "a1" * 18),
    ("Hugging Face", "hf_", r"[A-Za-z0-9]{20,}", "aB" * 17),
    ("Hugging Face, organization", "api_org_", r"[A-Za-z0-9]{20,}", "aB" * 17),
    ("Fireworks", "fw_", _DIGIT + r"[A-Za-z0-9]{18,}", "a1" * 12),
    ("Cerebras", "csk-", r"[A-Za-z0-9]{20,}", "a1" * 24),
    ("NVIDIA", "nvapi-", _DIGIT + r"[A-Za-z0-9_-]{20,}", "a1" * 32),
    ("Together", "tgp_v1_", r"[A-Za-z0-9_-]{20,}", "a1" * 21),
    ("LangSmith", "lsv2_", r"(?:pt|sk)_[a-f0-9]{16,}(?:_[a-f0-9]+)?", "pt_" + "a1" * 16),
    ("Tavily", "tvly-", _DIGIT + r"[A-Za-z0-9-]{20,}", "a1" * 16),
    ("Pinecone", "pcsk_", _DIGIT + r"[A-Za-z0-9_]{20,}", "a1" * 30),
    # Clouds
    ("AWS", "AKIA", r"[0-9A-Z]{16}(?![A-Za-z0-9])", "A1" * 8),
    ("AWS, temporary", "ASIA", r"[0-9A-Z]{16}(?![A-Za-z0-9])", "A1" * 8),
    ("AWS Bedrock", "ABSK", _DIGIT + r"[A-Za-z0-9+/]{60,}={0,2}", "a1" * 50),
    ("AWS Bedrock, temporary", "bedrock-api-key-", r"[A-Za-z0-9+/=]{20,}", "a1" * 30),
    ("Google API", "AIza", r"[A-Za-z0-9_-]{28,}", "a1" * 18),
    ("Google OAuth", "ya29.", r"[A-Za-z0-9_-]{20,}", "a1" * 40),
    ("Google OAuth, refresh", "1//0", _DIGIT + r"[A-Za-z0-9_-]{30,}", "a1" * 40),
    ("Google OAuth, client", "GOCSPX-", r"[A-Za-z0-9_-]{20,}", "a1" * 14),
    ("Alibaba Cloud", "LTAI", _DIGIT + r"[A-Za-z0-9]{12,}", "a1" * 10),
    ("DigitalOcean", "do", r"[opr]_v1_[a-f0-9]{16,}", "p_v1_" + "a1" * 32),
    ("Cloudflare Origin CA", "v1.0-", r"[a-f0-9]{24}-[a-f0-9]{40,}", "a1" * 12 + "-" + "a1" * 73),
    ("Fly.io", "fm", r"(?:1[ar]|2)_[A-Za-z0-9+/]{30,}={0,3}", "2_" + "a1" * 60),
    ("Fly.io, organization", "fo1_", r"[A-Za-z0-9_-]{20,}", "a1" * 21),
    ("Vercel", "vc", r"[acikpr]_" + _DIGIT + r"[A-Za-z0-9_-]{20,}", "p_" + "a1-_" * 14),
    ("Vercel Blob", "vercel_blob_rw_", r"[A-Za-z0-9_]{16,}", "a1" * 24),
    ("Netlify", "nf", r"[bcopu]_[A-Za-z0-9]{28,}", "p_" + "a1" * 18),
    ("Heroku", "HRKU-", r"[A-Za-z0-9_-]{20,}", "a1" * 30),
    ("Render", "rnd_", _DIGIT + r"[A-Za-z0-9]{24,}", "a1" * 16),
    ("PlanetScale", "pscale_", r"(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{20,}(?<!\.)", "pw_" + "a1" * 22),
    ("Supabase", "sbp_", r"(?:oauth_)?[a-f0-9]{20,}", "a1" * 20),
    ("Supabase, project", "sb_secret_", r"[A-Za-z0-9_-]{20,}", "a1" * 16),
    ("Neon", "napi_", r"[a-z0-9]{30,}", "a1" * 32),
    ("Databricks", "dapi", r"[a-f0-9]{32}(?:-[0-9])?(?![A-Za-z0-9])", "a1" * 16),
    ("Pulumi", "pul-", r"[a-f0-9]{28,}", "a1" * 20),
    ("Tailscale", "tskey-", r"[a-z]{2,12}-" + _DIGIT + r"[A-Za-z0-9-]{16,}", "auth-" + "a1" * 20),
    ("Doppler", "dp.", r"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{30,}", "pt." + "a1" * 21),
    ("HashiCorp Vault", "hv", r"[bsr]\." + _DIGIT + r"[A-Za-z0-9_-]{20,}", "s." + "a1" * 48),
    ("HashiCorp Vault, before 1.10", "s.", r"(?<!\.s\.)(?=[a-z0-9]{0,24}[A-Z])(?=[A-Z0-9]{0,24}[a-z])(?=[A-Za-z]{0,24}[0-9])[A-Za-z0-9]{24}(?![\w(\[-]|\.\w)", "aB1" * 8),
    # Code and packages
    ("GitHub", "gh", r"[pousr]_[A-Za-z0-9]{20,}", "p_" + "a1" * 18),
    ("GitHub, fine-grained", "github_pat_", r"[A-Za-z0-9_]{20,}", "a1" * 41),
    ("GitLab", "gl", r"(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-" + _DIGIT + r"[A-Za-z0-9_-]{14,}(?:\.[A-Za-z0-9_]{1,40}){0,3}", "pat-" + "a1" * 10),
    ("GitLab runner", "GR1348941", r"[A-Za-z0-9_-]{16,}", "a1" * 10),
    ("Atlassian, Bitbucket, Trello", "AT", r"(?:[AC]TT3[A-Za-z0-9_=-]{20,}|BB[A-Za-z0-9]{24,}|TA[a-f0-9]{40,})", "ATT3" + "a1" * 90),
    ("npm", "npm_", r"[A-Za-z0-9]{26,}", "a1" * 18),
    ("PyPI", "pypi-", r"[A-Za-z0-9_-]{50,}", "a1" * 80),
    ("RubyGems", "rubygems_", r"[a-f0-9]{20,}", "a1" * 24),
    ("crates.io", "cio", _UPPER + _DIGIT + r"[A-Za-z0-9]{32}(?![A-Za-z0-9_-])", "a1B2" * 8),
    ("NuGet", "oy2", _DIGIT + r"[a-z0-9]{43}(?![A-Za-z0-9_-])", "a" + "a1" * 21),
    ("Clojars", "CLOJARS_", r"[a-z0-9]{30,}", "a1" * 30),
    ("Artifactory", "AKCp", _DIGIT + r"[A-Za-z0-9]{45,}", "a1" * 34),
    ("Artifactory, reference", "cmVmd", _DIGIT + r"[A-Za-z0-9]{45,}", "a1" * 29 + "a"),
    ("Docker Hub", "dckr_", r"[op]at_[A-Za-z0-9_-]{16,}", "pat_" + "a1" * 14),
    ("Buildkite", "bk", r"[a-z]{2}_(?:[a-f0-9]{30,}|eyJ[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+){0,2})", "ua_" + "a1" * 20),
    ("CircleCI", "CCIP", r"(?:AT|RJ)_[A-Za-z0-9_]{20,}", "AT_" + "a1" * 31),
    ("Sourcegraph", "sgp_", r"(?:[a-f0-9]{16}_|local_)?[a-f0-9]{20,}", "a1" * 20),
    ("SonarQube", "sq", r"[apu]_[a-f0-9]{28,}", "u_" + "a1" * 20),
    ("Octopus Deploy", "API-", _DIGIT + r"[A-Z0-9]{24,}(?![a-z_-])", "A1" * 16),
    ("OpenShift", "sha256~", r"[A-Za-z0-9_-]{20,}", "a1" * 21),
    ("Prefect", "pn", r"[bu]_[A-Za-z0-9]{26,}", "u_" + "a1" * 18),
    # Monitoring
    ("Sentry", "sntry", r"[aisu]_[A-Za-z0-9+/=_-]{20,}", "u_" + "a1" * 32),
    ("New Relic", "NR", r"(?:AA|AK|BR|II|IQ|JS|RA)-[A-Za-z0-9-]{16,}", "AK-" + "A1" * 13),
    ("Grafana", "glsa_", r"[A-Za-z0-9]{16,}(?:_[a-f0-9]{1,8})?", "a1" * 16),
    ("Grafana, before 2023", "eyJrIjoi", r"[A-Za-z0-9]{50,}={0,3}", "a1" * 40),
    ("Grafana Cloud", "glc_", r"[A-Za-z0-9+/]{30,}={0,3}", "a1" * 40),
    ("Dynatrace", "dt0", r"[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{16,}", "c01." + "A1" * 12 + "." + "A1" * 32),
    ("PostHog", "phx_", r"[A-Za-z0-9]{28,}", "a1" * 21),
    # Messages and mail
    ("Slack", "xox", r"[abcdeoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}", "b-" + "1" * 12 + "-" + "a1" * 12),
    ("Slack app", "xapp-", r"[A-Za-z0-9-]{20,}", "1-A1" + "a1" * 20),
    ("SendGrid", "SG.", _DIGIT + r"[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?", "a1" * 11 + "." + "a1" * 21),
    ("Mailgun", "key-", r"[a-f0-9]{32}(?![A-Za-z0-9-])", "a1" * 16),
    ("Brevo", "xkeysib-", r"[a-f0-9]{20,}(?:-[A-Za-z0-9]+)?", "a1" * 32),
    ("Brevo, SMTP", "xsmtpsib-", r"[a-f0-9]{20,}(?:-[A-Za-z0-9]+)?", "a1" * 32),
    ("Resend", "re_", r"[A-Za-z0-9]{6,10}_" + _UPPER + _DIGIT + r"[A-Za-z0-9]{16,}", "a1B2C3d4_" + "a1B2" * 6),
    ("Twilio", "SK", r"[a-f0-9]{32}(?![A-Za-z0-9])", "a1" * 16),
    # Payments and shops
    ("Stripe", "sk_", r"(?:live|prod|test)_[A-Za-z0-9]{16,}", "live_" + "a1" * 12),
    ("Stripe, restricted", "rk_", r"(?:live|prod|test)_[A-Za-z0-9]{16,}", "live_" + "a1" * 12),
    ("Stripe webhook", "whsec_", r"[A-Za-z0-9+/]{20,}={0,2}", "a1" * 16),
    ("Square", "sq0", r"[a-z]{3}-[A-Za-z0-9_-]{16,}", "atp-" + "a1" * 11),
    ("Square, access", "EAAA", r"[El]" + _DIGIT + r"[A-Za-z0-9_-]{59}(?![A-Za-z0-9_+/=-])", "E" + "a1" * 29 + "a"),
    ("Shopify", "shp", r"(?:at|ca|pa|ss|ua|tka|rt)_[A-Fa-f0-9]{20,}", "at_" + "a1" * 16),
    ("PayPal, Braintree", "access_token$", r"(?:production|sandbox)\$[a-z0-9]{10,20}\$[a-f0-9]{16,}", "production$" + "a1" * 8 + "$" + "a1" * 16),
    ("Plaid", "access-", r"(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{8,}", "sandbox-" + "a1" * 4 + "-a1a1" * 3 + "-" + "a1" * 6),
    ("Flutterwave", "FLWSECK", r"(?:_TEST)?-[A-Za-z0-9]{12,}(?:-X)?", "-" + "a1" * 16),
    ("Shippo", "shippo_", r"(?:live|test)_[A-Fa-f0-9]{20,}", "live_" + "a1" * 20),
    ("EasyPost", "EZ", r"[AT]K" + _DIGIT + r"[A-Za-z0-9]{40,}", "AK" + "a1" * 27),
    ("Duffel", "duffel_", r"(?:live|test)_[A-Za-z0-9_=-]{20,}", "live_" + "a1" * 21),
    # Other services
    ("Linear", "lin_", r"(?:api|oauth|wh)_[A-Za-z0-9]{20,}", "api_" + "a1" * 20),
    ("Notion", "ntn_", _DIGIT + r"[A-Za-z0-9]{30,}", "1" * 11 + "a1" * 17),
    ("Notion, before 2024", "secret_", _DIGIT + r"[A-Za-z0-9]{32,}", "a1" * 21 + "a"),
    ("Figma", "fig", r"[dou][hr]?_" + _DIGIT + r"[A-Za-z0-9_-]{20,}", "d_" + "a1" * 20),
    ("Adobe", "p8e-", _DIGIT + r"[A-Za-z0-9_-]{24,}", "a1" * 16),
    ("Dropbox", "sl.", _DIGIT + r"[A-Za-z0-9_=-]{100,}", "a1" * 68),
    ("Facebook", "EAA", r"[CM]" + _DIGIT + r"[A-Za-z0-9]{80,}", "C" + "a1" * 70),
    ("Harness", "pat.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]*", "a1" * 11 + "." + "a1" * 12 + "." + "a1" * 10),
    ("Airtable", "pat", r"[A-Za-z0-9]{14}\.[a-f0-9]{16,}", "a1" * 7 + "." + "a1" * 32),
    ("HubSpot", "pat-", r"[a-z]{2}[0-9]?-[a-f0-9]{8}-[a-f0-9-]{8,}", "na1-" + "a1" * 4 + "-a1a1" * 3 + "-" + "a1" * 6),
    ("Postman", "PMA", r"[KT]-[A-Za-z0-9-]{20,}", "K-" + "a1" * 12 + "-" + "a1" * 17),
    ("ClickUp", "pk_", r"[0-9]{5,12}_[A-Z0-9]{20,}", "1" * 8 + "_" + "A1" * 16),
    ("Contentful", "CFPAT-", r"[A-Za-z0-9_-]{20,}", "a1" * 21),
    ("Typeform", "tfp_", _DIGIT + r"[A-Za-z0-9_.=-]{30,}(?<!\.)", "a1" * 29),
    ("ReadMe", "rdme_", r"[a-z0-9]{40,}", "a1" * 35),
    ("Frame.io", "fio-u-", r"[A-Za-z0-9_=-]{40,}", "a1" * 32),
    ("Mapbox", "sk.eyJ", r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]*)?", "a1" * 25 + "." + "a1" * 11),
    ("1Password", "ops_eyJ", r"[A-Za-z0-9+/_-]{40,}={0,3}", "a1" * 150),
    ("1Password, secret key", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){2,4}[A-Z0-9]{2,5}", "A1A1A1-A1A1A1" + "-A1A1A" * 4),
    ("age", "AGE-SECRET-KEY-1", r"[A-Z0-9]{20,}", "Q2" * 29),
    ("JSON Web Token", "eyJ", r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}", "a1" * 9 + "." + "a1" * 9 + "." + "a1" * 22),
)  # fmt: skip

# Kinds that begin with something that may be shown, such as an address.
# (kind, a text that is always in it, an expression for what is shown and one for what
# is masked, examples of both)
PARTLY_SHOWN = (
    ("Slack webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|triggers|workflows)/", r"[A-Za-z0-9+/_-]{16,}", "hooks.slack.com/services/", "T" + "1" * 8 + "/B" + "1" * 8 + "/" + "a1" * 12),
    ("Discord webhook", "/api/webhooks/", r"/api/webhooks/[0-9]{10,25}/", r"[A-Za-z0-9_-]{16,}", "discord.com/api/webhooks/" + "1" * 18 + "/", "a1" * 34),
    ("Microsoft Teams webhook", ".webhook.office.com/", r"\.webhook\.office\.com/webhookb2/", r"[A-Za-z0-9@/_-]{16,}", "example.webhook.office.com/webhookb2/", "a1" * 16 + "/IncomingWebhook/" + "a1" * 16),
    ("Telegram bot", ":AA", r":(?<=[0-9]{8}:)", r"AA[A-Za-z0-9_-]{24,}", "1" * 10 + ":", "AA" + "a1" * 16 + "a"),
    # Its first part is the bot's number, in base64.
    ("Discord bot", ".", r"[MNO](?:(?<![A-Za-z0-9_.-].)|(?<=\\[nrt].))[DTjz][AEIMQUYcgk][w-z0-5]", r"(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){4,5}[A-Za-z0-9]{0,3}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{12,}", "MTEx", "MTEx" * 5 + ".a1a1a1." + "a1" * 19),
    ("Azure client", "Q~", r"Q~(?<=[A-Za-z0-9_~.]{3}[0-9]Q~)", r"[A-Za-z0-9_~.-]{24,}(?<!\.)", "a1a1Q~", "a1" * 17),
    ("Azure shared access", "sig=", r"sig=(?<=[?&]sig=)", r"[A-Za-z0-9%/+]{30,}={0,2}", "example?sig=", "a1" * 22 + "%3D"),
    ("AWS, Google signed address", "X-", r"X-(?:Amz|Goog)-(?:Signature|Security-Token)=", r"[A-Za-z0-9%/+=_-]{16,}", "example?X-Amz-Signature=", "a1" * 32),
    ("HCP Terraform", ".atlasv1.", r"\.atlasv1\.(?<=[A-Za-z0-9]\.atlasv1\.)", r"[A-Za-z0-9_=-]{20,}", "x" * 14 + ".atlasv1.", "a1" * 33),
    ("New Relic licence", "NRAL", r"[A-Za-z0-9](?:(?<![A-Za-z0-9].)|(?<=\\[nrt].))[A-Za-z0-9]{3}", r"[A-Za-z0-9]{32}NRAL(?![A-Za-z0-9])", "a1a1", "a1" * 16 + "NRAL"),
    ("Mailchimp", "-us", r"[a-f0-9](?:(?<![A-Za-z0-9-].)|(?<=\\[nrt].))[a-f0-9]{3}", r"[a-f0-9]{28}-us[0-9]{1,2}(?![A-Za-z0-9-])", "a1a1", "a1" * 14 + "-us21"),
    ("npm login", ":_auth=", r":_auth=", r"[A-Za-z0-9+/]{8,}={0,2}", "//example/:_auth=", "a1" * 10),
    ("Docker login", "auth", r"\"auth\\?\"\s{0,4}:\s{0,4}\\?\"", r"(?=[A-Za-z+/]{0,200}[0-9=])[A-Za-z0-9+/]{12,}={0,2}", '"auth": "', "a1" * 12),
)  # fmt: skip
