"""Where programs keep keys, tokens, passwords and what was typed: the list that the lower access levels never see.

Names are relative to a home folder. A name that is not there costs nothing. Used by `masks`.
"""

HOME_CREDENTIALS = (
    # remote shells, signing, password stores
    ".ssh", ".gnupg", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", ".pki", ".age",
    ".config/sops", ".config/op", ".config/1Password", ".config/Bitwarden", ".config/Bitwarden CLI",
    ".config/keepassxc", ".vault-token", ".Xauthority", ".ICEauthority", "Library/Keychains",
    # clouds and clusters
    ".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".kube", ".docker", ".config/containers", ".config/helm",
    ".oci", ".bluemix", ".aliyun", ".tccli", ".config/doctl", ".config/hcloud", ".config/scw", ".config/rclone",
    ".terraform.d/credentials.tfrc.json", ".terraformrc", ".pulumi", ".fly", ".config/fly", ".vercel",
    ".config/netlify", ".netlify", ".config/heroku", ".ngrok2", ".config/ngrok", ".databrickscfg", ".snowflake",
    ".kaggle", ".huggingface", ".cache/huggingface/token", ".cache/huggingface/stored_tokens",
    # code hosting and package registries
    ".gitconfig", ".git-credentials", ".config/git", ".config/gh", ".config/glab-cli", ".config/hub", ".npmrc",
    ".yarnrc", ".yarnrc.yml", ".config/yarn", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".bundle/config", ".m2/settings.xml", ".m2/settings-security.xml",
    ".gradle/gradle.properties", ".composer/auth.json",
    ".config/composer/auth.json", ".nuget/NuGet", ".config/NuGet", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg",
    # databases and mail
    ".pgpass", ".my.cnf", ".mylogin.cnf", ".mongorc.js", ".msmtprc", ".mutt", ".thunderbird",
    # what was typed
    ".bash_history", ".zsh_history", ".zsh_sessions", ".history", ".histfile", ".sh_history", ".ash_history",
    ".local/share/fish", ".python_history", ".ipython", ".node_repl_history", ".irb_history", ".psql_history",
    ".mysql_history", ".sqlite_history", ".rediscli_history", ".lesshst", ".viminfo", ".local/state/bash",
    ".local/state/nvim",
    # browsers
    ".mozilla", ".config/mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
    ".config/microsoft-edge", ".config/vivaldi", ".config/opera", "snap/firefox", "snap/chromium", ".var/app",
    "Library/Application Support/Google", "Library/Application Support/Firefox", "Library/Cookies",
    # other agents, with their keys and talk
    ".claude", ".claude.json", ".codex", ".gemini", ".cursor", ".config/github-copilot", ".config/openai",
    ".config/anthropic", ".config/goose", ".continue", ".aider.conf.yml", ".config/aider", ".config/llm",
    ".ollama/id_ed25519",
    # wallets
    ".bitcoin", ".ethereum", ".electrum",
)  # fmt: skip

# Small enough to be looked through for files that have a second name elsewhere.
KEY_FOLDERS = ("/.ssh", "/.aws", "/.gnupg")

# Of the system: hidden where this user can read them, which is when Halo runs as root.
SYSTEM_CREDENTIALS = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d",
    "/etc/ssl/private", "/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_dsa_key", "/etc/kubernetes", "/etc/rancher",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard", "/etc/letsencrypt", "/var/lib/kubelet", "/var/spool/cron", "/var/lib/docker",
    "/var/lib/postgresql", "/var/lib/mysql", "/var/lib/redis",
)  # fmt: skip
